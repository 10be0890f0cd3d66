"""A secret that a user enters stays in memory: no part of it is in any record."""

from __future__ import annotations

import json
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dbdyno.base.dsn import UNREADABLE, sql_without_secrets, text_without_secrets, without_secrets
from dbdyno.base.errors import PlanError
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import resume

MARK = "S3cr3t"
ODD = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=12)
PASSWORDS = st.builds(lambda a, b, c: f"{a}{MARK}{b}{MARK}{c}", ODD, ODD, ODD)


@given(PASSWORDS)
@settings(max_examples=300, deadline=None)
def test_no_part_of_a_password_is_left_of_a_connection_string(password: str) -> None:
    dsn = make_conninfo("", host="db", user="scott", password=password, dbname="orders")
    left = without_secrets(dsn)
    assert left is not None and MARK not in left
    assert conninfo_to_dict(left) == {"host": "db", "user": "scott", "dbname": "orders"}
    url = f"postgresql://scott:{quote(password, safe='')}@db/orders?sslpassword={quote(password, safe='')}"
    assert MARK not in str(without_secrets(url))
    assert conninfo_to_dict(without_secrets(url) or "") == {"host": "db", "user": "scott", "dbname": "orders"}


def test_a_password_with_an_at_sign_and_a_colon_went_for_host_and_port() -> None:
    assert without_secrets("postgresql://scott:S3cr3t@S3cr3t:@db/orders") == UNREADABLE


@given(PASSWORDS)
@example("S3cr3tS3cr3t%80")
@settings(max_examples=300, deadline=None)
def test_a_password_that_was_not_quoted_is_dropped_with_all_that_cannot_be_read(password: str) -> None:
    for dsn in (f"postgresql://scott:{password}@db/orders", f"host=db user=scott password={password}"):
        left = str(without_secrets(dsn))
        try:
            read = conninfo_to_dict(dsn)
        except (psycopg.Error, UnicodeError):
            assert left == UNREADABLE
            continue
        elsewhere = {name: value for name, value in read.items() if name != "password" and MARK in str(value)}
        assert MARK not in left or (elsewhere and set(elsewhere) <= {"dbname", "user", "port"})


def test_a_comma_and_a_slash_in_a_password_that_was_not_quoted_leave_nothing_of_it() -> None:
    """A drawn test found it: host `scott,S3cr3t`, port `S3cr3t,`, database `@db/orders`."""
    assert without_secrets("postgresql://scott:S3cr3t,S3cr3t/@db/orders") == UNREADABLE
    assert without_secrets("postgresql://scott:S3cr3t@S3cr3t/0@db/orders") == UNREADABLE
    assert without_secrets("postgresql://a:1,b:2/orders") == "dbname=orders host=a,b port=1,2"


@given(PASSWORDS)
@settings(max_examples=200, deadline=None)
def test_no_part_of_a_password_is_left_of_a_plan(password: str) -> None:
    dsn = make_conninfo("", host="db", password=password)
    literal = password.replace("'", "''").replace("\\", "\\\\")
    comment = f"# dsn = {json.dumps(dsn)}\n"
    sql = _toml(f"alter user x password E'{literal}' valid until 'now'")
    text = f"{comment}dsn = {_toml(dsn)}\nsql = {sql}\n"
    left = text_without_secrets(text)
    assert MARK not in left


def _toml(value: str) -> str:
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f") if "\\ud8" not in json.dumps(value) else '""'


@pytest.mark.parametrize(
    "text",
    [
        "password=***,123S3cr3t",
        "password = 'a''S3cr3t'",
        "create role r password 'S3cr3t'",
        "alter role r with encrypted password $q$S3cr3t$q$",
        "create user u identified by 'S3cr3t'",
        "create user u identified by S3cr3t;",
        "create user mapping for u server s options (user 'u', password 'S3cr3t')",
        "select dblink('host=h password=S3cr3t,S3cr3t user=x', 'select 1')",
        "select dblink('host=h password=''a S3cr3t'' user=x', 'select 1')",
        "see postgresql://u:p@S3cr3t@h/db and https://u:S3cr3t@h",
    ],
)
def test_sql_says_no_secret(text: str) -> None:
    assert MARK not in sql_without_secrets(text)


@pytest.mark.parametrize(
    "text",
    ["select password from users", "update t set pwd_changed = now()", "select 1 -- no password", "select '://a@b'"],
)
def test_sql_without_a_secret_stays_as_it_is(text: str) -> None:
    assert sql_without_secrets(text) == text


def test_a_plan_whose_sql_held_a_secret_is_kept_without_it_and_cannot_go_on(tmp_path) -> None:
    """With the secret left out it would set another password."""
    from dbdyno.evidence.run import new_run

    plan = parse_plan(
        """title = "t"
[target]
dsn = "host=db password='a, S3cr3t'"
[workload]
scripts = [{name = "s", text = "alter role r password 'S3cr3t';"}]
[[arm]]
name = "a"
before_sql = ["set role r"]
""",
        "plan.toml",
    )
    kept = plan.to_dict()
    assert MARK not in json.dumps(kept)
    assert kept["secrets_left_out"] is True
    run = new_run(tmp_path, "t", {"plan": kept, "seed": 1, "switch": "slice"})
    run.save(status="aborted")
    with pytest.raises(PlanError, match="contained secrets"):
        resume(run)


def test_a_plan_without_secrets_is_kept_whole() -> None:
    text = """title = "t"
[workload]
scripts = [{name = "s", text = "select 'it''s' -- fine"}]
[[arm]]
name = "a"
"""
    kept = parse_plan(text, "plan.toml").to_dict()
    assert kept["toml"] == text
    assert "secrets_left_out" not in kept


def test_a_variable_or_a_setting_with_the_name_of_a_secret_is_one() -> None:
    plan = parse_plan(
        """title = "t"
[workload]
scripts = [{name = "s", text = "select :app_password;"}]
[[factor]]
name = "password"
levels = [
  {name = "one", variables = {app_password = "S3cr3tA"}},
  {name = "other", variables = {app_password = "S3cr3tB"}},
]
[[factor]]
name = "login"
levels = [
  {name = "one", settings = {"app.password" = "S3cr3tC", password_encryption = "md5"}},
  {name = "other", settings = {"app.password" = "S3cr3tD", password_encryption = "md5"}},
]
""",
        "plan.toml",
    )
    kept = plan.to_dict()
    assert "S3cr3t" not in json.dumps(kept)
    assert kept["secrets_left_out"] is True
    assert kept["arms"][0]["settings"] == {"app.password": "***", "password_encryption": "md5"}
    assert kept["arms"][0]["levels"] == {"password": "one", "login": "one"}


def test_levels_of_a_factor_that_are_secrets_need_names() -> None:
    plan = """title = "t"
[workload]
scripts = [{name = "s", text = "select :app_password;"}]
[[factor]]
variables.app_password = ["S3cr3tA", "S3cr3tB"]
"""
    with pytest.raises(PlanError, match="would appear in every report") as told:
        parse_plan(plan, "plan.toml")
    assert "S3cr3t" not in str(told.value)
    assert 'levels = [{name = "one", variables = {app_password = "..."}}]' in str(told.value.next_step)


@pytest.mark.parametrize(
    ("dsn", "left"),
    [
        ("mariadb://scott:S3cr3t@db:3307/shop", "mariadb://scott@db:3307/shop"),
        ("mysql://scott:S3cr3t@db", "mysql://scott@db"),
        ("mariadb://scott:S3cr3t@S3cr3t@db/shop", "mariadb://scott@db/shop"),
        ("mariadb://db/shop?ssl_ca=/etc/ca.pem&read_default_file=/home/S3cr3t", "mariadb://db/shop?ssl_ca=/etc/ca.pem"),
        ("mariadb://scott:S3cr3t/x@db/shop", UNREADABLE),
        ("mariadb://scott:12/S3cr3t@db/shop", UNREADABLE),
        ("mariadb://scott:12?S3cr3t@db/shop", UNREADABLE),
        ("mariadb://scott:12#S3cr3t@db/shop", UNREADABLE),
        ("mariadb://db/shop?password=S3cr3t", UNREADABLE),
    ],
)
def test_a_url_of_mariadb_is_told_without_its_password_or_not_at_all(dsn: str, left: str) -> None:
    assert without_secrets(dsn) == left
    assert "S3cr3t" not in text_without_secrets(f"dsn = {dsn!r}")
