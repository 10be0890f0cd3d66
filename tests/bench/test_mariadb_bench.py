"""MariaDB as a bench, on a server that belongs to somebody else."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from mariadb_lab import MariaLab

import certificates
from command_line import dbdyno
from dbdyno import _core
from dbdyno.base.errors import TargetError
from dbdyno.bench.mariadb.address import address
from dbdyno.bench.mariadb.claim import LOCK
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.settings import classify
from mariadb_server import MariaServer, missing
from waiting import until

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

SECRET = "gehei mß@/#1"
FLUSH = '[[arm]]\nname = "a"\n[[arm]]\nname = "b"\nsettings = {innodb_flush_log_at_trx_commit = "0"}\n'
ONE = '[[arm]]\nname = "a"\n'


@pytest.fixture
def server(maria: MariaServer) -> MariaServer:
    return maria


@pytest.fixture
def lab(tmp_path: Path, server: MariaServer) -> MariaLab:
    return MariaLab(tmp_path, server.dsn)


def asked(server: MariaServer, sql: str) -> str:
    with contextlib.closing(server.connect()) as connection:
        return str(rows(connection, sql)[0][0])


def flush_now(server: MariaServer) -> str:
    return asked(server, "select @@global.innodb_flush_log_at_trx_commit")


def test_a_plan_runs_and_every_operation_is_kept(lab: MariaLab, server: MariaServer) -> None:
    settings = 'settings = {sort_buffer_size = "1M", tx_isolation = "SERIALIZABLE"}\n'
    lab.plan(f'[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n{settings}')
    lab.run()
    manifest = lab.manifest()
    assert manifest["bench"] == "mariadb" and manifest["switch"] == "slices"
    assert [arm["how"] for arm in manifest["arms"]] == [{}, {"sort_buffer_size": "session", "tx_isolation": "session"}]
    counts = dict(lab.sql("select kind, count(*) from {calls} group by kind"))
    assert counts["transaction"] == counts["begin"] == counts["exec"] == counts["commit"] > 50
    assert lab.sql("select distinct rows, error from {calls} where kind = 'exec'") == [(1, None)]
    commits = lab.sql(
        "select max(value) - min(value) from {metrics} where source = 'global status' and metric = 'com_commit'"
    )
    assert commits[0][0] >= counts["commit"] * 0.9
    assert asked(server, "select count(*) from information_schema.tables where table_name = 't'") == "0"


def test_the_same_script_counts_alike_in_every_protocol(lab: MariaLab) -> None:
    script = "\\set n random(2, 5)\nselect id as first, s from {table} where id < :n order by id limit 1 \\gset x_\n"
    script += "\\if :x_first != 1\nselect broken;\n\\endif\nselect v from {table} where id <= :n;\n"
    arms = "".join(f'[[arm]]\nname = "{one}"\nprotocol = "{one}"\n' for one in ("prepared", "extended", "simple"))
    lab.plan(arms, script=script)
    lab.run()
    found = lab.sql("select arm, min(rows), max(rows), count(error) from {calls} where kind = 'exec' group by arm")
    assert {(low, most, errors) for _, low, most, errors in found} == {(1, 5, 0)} and len(found) == 3


def test_a_global_setting_needs_the_users_word(lab: MariaLab, server: MariaServer) -> None:
    lab.plan(FLUSH)
    done = lab.run(code=2)
    assert "does not allow it" in done.stderr and "alter_system = true" in done.stderr
    assert flush_now(server) == "1"


def test_a_global_setting_takes_effect_in_its_turns_and_is_put_back(
    lab: MariaLab, server: MariaServer, owed_apart: Path
) -> None:
    lab.plan(FLUSH, target="alter_system = true")
    lab.run()
    arm = lab.manifest()["arms"][1]
    assert (arm["how"], arm["was"]) == (
        {"innodb_flush_log_at_trx_commit": "global"},
        {"innodb_flush_log_at_trx_commit": "1"},
    )
    assert flush_now(server) == "1" and not list(owed_apart.glob("*"))
    assert asked(server, f"select is_free_lock('{LOCK}')") == "1"


def test_settings_are_put_back_when_the_runner_is_killed(lab: MariaLab, server: MariaServer, owed_apart: Path) -> None:
    lab.plan(
        FLUSH.replace('name = "a"', 'name = "a"\nsettings = {innodb_flush_log_at_trx_commit = "2"}'),
        target="alter_system = true",
    )
    words = ("run", "plan.toml", "--blocks", "200")
    runner = multiprocessing.get_context("fork").Process(target=dbdyno, args=words, kwargs={"cwd": lab.folder})
    runner.start()
    try:
        assert until(lambda: flush_now(server) != "1")
        assert list(owed_apart.glob("*.json"))
    finally:
        runner.kill()
        runner.join()
    assert until(lambda: flush_now(server) == "1" and not list(owed_apart.glob("*.json")))
    assert until(lambda: asked(server, "select count(*) from information_schema.tables where table_name = 't'") == "0")
    assert until(lambda: asked(server, f"select is_free_lock('{LOCK}')") == "1")


def test_two_runs_never_alter_one_servers_settings_at_once(lab: MariaLab, server: MariaServer) -> None:
    lab.plan(FLUSH, target="alter_system = true")
    with contextlib.closing(server.connect()) as other:
        rows(other, "select get_lock(%s, 0)", [LOCK])
        done = lab.run(code=2)
    assert "another dbdyno run alters settings of this server (session" in done.stderr
    assert flush_now(server) == "1"


def asked_nothing(server: MariaServer, sql: str) -> None:
    with contextlib.closing(server.connect()) as connection:
        rows(connection, sql)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"innodb_flush_log_at_trx_comit": "0"}, "did you mean innodb_flush_log_at_trx_commit"),
        ({"innodb_flush_log_at_trx_commit": "9"}, "outside 0 to 3"),
        ({"innodb_flush_log_at_trx_commit": "often"}, "expected a whole number"),
        ({"tx_isolation": "high"}, "expected one of READ-UNCOMMITTED"),
        ({"innodb_flush_method": "fsync"}, "restarts only servers that it started"),
        ({"version": "12"}, "cannot be changed"),
        ({"datadir": "/tmp"}, "dbdyno could lose access to the server"),
        ({"init_connect": "drop table t"}, "would run code that is not part of the load"),
        ({"sql_mode": "ANSI'; drop table t; --"}, "a quote, a backslash"),
        ({"sort_buffer_size": "1000001; drop"}, "expected a whole number"),
        ({"time_zone": "Nowhere/Land"}, "the server refuses"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_setting_that_does_not_fit_is_refused_with_its_place(
    server: MariaServer, setting: dict[str, str], expected: str
) -> None:
    with pytest.raises(TargetError) as refused:
        classify(MariaDB.open(server.dsn), setting)
    assert expected in f"{refused.value.message} {refused.value.next_step}"
    assert str(refused.value.where).startswith("setting ")


@pytest.mark.parametrize(
    ("name", "value", "literal"),
    [
        ("innodb_flush_log_at_trx_commit", "2", "2"),
        ("sort_buffer_size", "2MB", "2097152"),
        ("long_query_time", "0.25", "0.25"),
        ("innodb_adaptive_hash_index", "1", "'ON'"),
        ("tx_isolation", "read-committed", "'READ-COMMITTED'"),
        ("sql_mode", "ANSI", "'ANSI'"),
        ("optimizer_switch", "mrr=on", "'mrr=on'"),
    ],
)
def test_a_value_goes_to_the_server_as_its_type_wants(server: MariaServer, name: str, value: str, literal: str) -> None:
    [change] = classify(MariaDB.open(server.dsn), {name: value})
    assert (change.literal, change.how) == (literal, "global" if name.startswith("innodb") else "session")


def test_a_user_without_the_right_may_not_set_global(lab: MariaLab, server: MariaServer) -> None:
    lab.dsn = server.dsn_of("weak")
    lab.plan(FLUSH, target="alter_system = true")
    done = lab.run(code=2, MYSQL_PWD=SECRET)
    assert "the user may not SET GLOBAL innodb_flush_log_at_trx_commit" in done.stderr


def test_a_password_reaches_the_server_and_nothing_else(lab: MariaLab, server: MariaServer) -> None:
    lab.dsn = server.dsn_of(f"weak:{quote(SECRET, safe='')}")
    lab.plan(ONE)
    done = lab.run()
    kept = "".join(
        path.read_text(errors="replace") for path in lab.last.rglob("*") if path.suffix in (".json", ".html")
    )
    for word in ("gehei", "@/#", "%40"):
        assert word not in kept + done.stdout + done.stderr
    lab.dsn = server.dsn_of("weak:wrong-geheim")
    lab.plan(ONE)
    done = lab.run(code=2)
    assert "Access denied" in done.stderr and "geheim" not in done.stderr


def load(server: MariaServer, script: str, **more: object) -> _core.Load:
    """Return a load with one session on the server, run by the load's client only."""
    connection = {"engine": "mariadb", "host": "127.0.0.1", "port": server.port, "user": "root", "dbname": "test"}
    for key in ("sslmode", "sslrootcert", "user", "password"):
        if key in more:
            connection[key] = more.pop(key)
    connection.setdefault("sslmode", "disable")
    arm = {"name": "a", "sessions": 1, "connection": connection, "scripts": [{"name": "s", "text": script}], **more}
    return _core.Load({"seed": 7, "arms": [arm]})  # type: ignore[typeddict-item, list-item]


def block(run: _core.Load, folder: Path, transactions: int = 3) -> dict[str, object]:
    """Run one block of that many transactions; return the arm's report with its error codes."""
    run.begin_block(folder, "b")
    report = run.run(0, [(0, 0, None, transactions)])
    run.end_block()
    return {**report["arms"][0], "codes": report["error_codes"]}


def test_the_load_speaks_tls_and_trusts_whom_it_is_told_to(
    server: MariaServer, tmp_path: Path, authority: certificates.Signer
) -> None:
    ca = server.folder / "ca.pem"
    script = "select variable_value as v from information_schema.session_status"
    script += " where variable_name = 'SSL_CIPHER' and variable_value {} '' \\gset\n"
    trusted = load(server, script.format("<>"), sslmode="verify-full", sslrootcert=str(ca))
    assert block(trusted, tmp_path)["errors"] == 0
    assert block(load(server, script.format("=")), tmp_path)["errors"] == 0
    other = tmp_path / "other.pem"
    other.write_bytes(certificates.make("other", authority=True).pem())
    with pytest.raises(TargetError, match="TLS"):
        load(server, "select 1;", sslmode="verify-ca", sslrootcert=str(other)).try_connect()


def test_a_signed_login_is_answered(server: MariaServer) -> None:
    with contextlib.closing(server.connect()) as connection:
        try:
            rows(connection, "install soname 'auth_ed25519'")
        except Exception as error:
            pytest.skip(f"this server has no ed25519 plugin: {error}")
        rows(connection, "create user signer@localhost identified via ed25519 using password('geheim')")
    load(server, "select 1;", user="signer", password="geheim").try_connect()
    with pytest.raises(TargetError, match="Access denied"):
        load(server, "select 1;", user="signer", password="other").try_connect()


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("signal sqlstate '45000' set message_text = 'client hunter is broke'", "45000", "ERROR 1644: (a message of"),
        (
            "signal sqlstate '23000' set mysql_errno = 1062, message_text = 'hunter'",
            "23000",
            "ERROR 1062: (a message of",
        ),
        ("insert into test.keyed values (1)", "23000", "ERROR 1062: Duplicate entry '…' for key …"),
        ("select nothing from nowhere", "42S02", "ERROR 1146: Table '…"),
    ],
)
def test_an_error_has_its_sqlstate_number_and_no_value(
    server: MariaServer, tmp_path: Path, body: str, code: str, words: str
) -> None:
    asked_nothing(server, "create or replace table test.keyed (id int primary key) as select 1 as id")
    asked_nothing(server, f"create or replace procedure test.fails() begin {body}; end")
    report = block(load(server, "call test.fails();"), tmp_path)
    assert (report["errors"], report["codes"]) == (3, [code])
    assert str(report["first_error"]).startswith(words) and "hunter" not in str(report["first_error"])


def test_a_handled_error_is_none_and_a_procedure_may_return_several_results(
    server: MariaServer, tmp_path: Path
) -> None:
    body = "declare continue handler for sqlstate '45000' select 'handled';"
    body += " select 1; signal sqlstate '45000'; select 2, 3;"
    asked_nothing(server, f"create or replace procedure test.handles() begin {body} end")
    assert block(load(server, "call test.handles();\nselect 1;\n"), tmp_path)["errors"] == 0


def test_a_statement_ends_at_its_limit_and_the_session_goes_on(server: MariaServer, tmp_path: Path) -> None:
    script = "select count(*) from test.seq_1_to_100000 a, test.seq_1_to_100000 b;"
    report = block(load(server, script, statement_timeout_ms=100), tmp_path, 2)
    assert (report["errors"], report["codes"]) == (2, ["70100"])


def test_a_wish_to_stop_ends_what_the_server_does(server: MariaServer, tmp_path: Path) -> None:
    import threading

    run = load(server, "select sleep(600);")
    threading.Timer(0.3, run.stop).start()
    began = time.monotonic()
    assert block(run, tmp_path)["errors"] == 0 and time.monotonic() - began < 30
    assert until(
        lambda: (
            asked(server, "select count(*) from information_schema.processlist where info like 'select sleep%'") == "0"
        )
    )


def test_a_session_that_the_server_ends_is_made_again(server: MariaServer, tmp_path: Path) -> None:
    run = load(server, "select 1;\n\\sleep 1 ms\n")
    run.connect(0)
    with contextlib.closing(server.connect()) as other:
        sessions = "select id from information_schema.processlist where id <> connection_id() and command = 'Sleep'"
        for (session,) in rows(other, sessions):
            with contextlib.suppress(Exception):
                rows(other, "kill %s", [session])
    report = block(run, tmp_path, 5)
    assert (report["transactions"], report["errors"]) == (5, 1)


@pytest.mark.parametrize(
    ("script", "expected"), [("\\redo\nselect 1;", "redo"), ("\\startpipeline\nselect 1;\n\\endpipeline", "pipeline")]
)
def test_what_only_postgresql_can_is_refused_before_the_run(server: MariaServer, script: str, expected: str) -> None:
    from dbdyno.base.errors import PlanError

    with pytest.raises(PlanError, match=f"MariaDB: .*{expected}.* is not supported"):
        load(server, script)


def test_a_file_of_options_says_who_enters(lab: MariaLab, server: MariaServer) -> None:
    file = lab.folder / "my.cnf"
    file.write_text(f"[client]\nhost = 127.0.0.1\nport = {server.port}\nuser = weak\npassword = '{SECRET[:5]}'\n")
    lab.dsn = f"mariadb://127.0.0.1:{server.port}/test?read_default_file={file}"
    lab.plan(ONE)
    assert "Access denied for user 'weak'" in lab.run(code=2).stderr
    asked_nothing(server, "create user filed@localhost identified by 'plain'")
    asked_nothing(server, "grant all on test.* to filed@localhost")
    file.write_text(file.read_text().replace("weak", "filed").replace(f"'{SECRET[:5]}'", "plain"))
    target = MariaDB.open(lab.dsn)
    assert target.safe_dsn == f"mariadb://filed@127.0.0.1:{server.port}/test"
    assert target.load_connection("x")["password"] == "plain"


def test_a_table_that_a_later_statement_of_the_set_up_meets_is_never_dropped(
    lab: MariaLab, server: MariaServer
) -> None:
    """The first statement had registered the teardown, which then dropped the user's table."""
    with contextlib.closing(server.connect()) as connection:
        rows(connection, "create table test.precious as select 42 as i")
        made = '"create table test.made (i int)", "create table test.precious (i int)"'
        work = f"""[workload]
setup = [{made}]
teardown = ["drop table test.made", "drop table test.precious"]
scripts = [{{{{name = "s", text = "select 1;"}}}}]
"""
        lab.plan(ONE, work=work)
        done = lab.run(code=2)
        assert "already exists" in done.stderr and "the teardown was not run" in done.stderr
        assert int(rows(connection, "select i from test.precious")[0][0]) == 42
        rows(connection, "drop table test.precious, test.made")


def test_a_plan_from_elsewhere_says_what_it_would_do() -> None:
    from dbdyno.bench.mariadb.bench import MariaDBBench
    from dbdyno.study.plan.plan import Arm, Plan, Script, Workload

    work = Workload([Script("s", "select 1;")], setup=["create table t (v int)"], teardown=["drop table t"])
    arm = Arm("a", settings={"sync_binlog": "1"}, before_sql=["flush tables"])
    told = MariaDBBench.side_effects(Plan("p", [arm], work, dsn="mariadb://db/x"), None)
    assert told[:2] == ["connects to mariadb://db/x", "sets sync_binlog = 1 (a)"]
    assert {"sends create table t (v int)", "sends select 1;", "sends flush tables", "sends drop table t"} <= set(told)


@pytest.mark.parametrize("password", ["12?S3cr3t=1", "12/S3cr3t", "12#S3cr3t", "S3cr3t/", "12?S3cr3t"])
def test_a_password_that_was_not_quoted_is_not_told(password: str) -> None:
    with pytest.raises(TargetError, match="the password has an unescaped character") as refused:
        address(f"mariadb://scott:{password}@db/shop")
    assert "S3cr3t" not in f"{refused.value}"


def test_a_server_without_a_number_of_its_own_is_known_by_where_its_data_lie(server: MariaServer) -> None:
    """10.11.5 has no `server_uid`: every run, snapshot and move there ended with "Unknown system variable"."""
    from dbdyno.bench.mariadb.server import IDENTITY

    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"select {IDENTITY}, {IDENTITY.replace('SERVER_UID', 'NO_SUCH')}, @@hostname, @@datadir")
        known, without, host, folder = cursor.fetchone()
        cursor.execute("show variables like 'server_uid'")
        uid = cursor.fetchone()
    assert without == f"{host} {folder}" and known == (uid[1] if uid else without)
