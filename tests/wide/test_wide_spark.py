"""The same map with Spark and its connector gives the results of `wide sql`; what Spark would change is refused."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from test_wide_differential import fill, plain, query
from wide_lab import SHOP, WideLab

from command_line import dbdyno
from dbdyno.base.errors import WideError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.wide import spark
from dbdyno.wide.address import address
from dbdyno.wide.answer import Answer
from dbdyno.wide.catalog import read_keyspace
from dbdyno.wide.mapping import WideMap, map_of
from skipped import skipped_on

# pyspark leaves sockets and its JVM to the garbage collector.
QUIET = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.soak, *map(pytest.mark.filterwarnings, QUIET)]
QUERIES = int(os.environ.get("DYNO_SPARK_QUERIES", "40"))
ODD = """
create table odd (
  id int, n int, big bigint, b blob, d date, du duration, f float, do double, i inet, si smallint, t time,
  ts timestamp, u uuid, v varint, de decimal, bo boolean, m map<text, int>, l list<int>, sm map<text, int> static,
  primary key (id, n)
);
insert into odd (id, n, big, b, d, du, f, do, i, si, t, ts, u, v, de, bo, m, l, sm) values (1, 1, 9000000000, 0xcafe,
  '1500-01-02', 1y3mo2w1d4h5m6s7ms8us9ns, 1.5, -0.1, '2001:db8::5', -3, '10:11:12.000456789',
  '2026-01-02 03:04:05.678+0000', bd5f9d9d-6da7-4a40-8cb6-a5f1b1c0f593, 12345678901234567890123456789012345678,
  -1234567890.0123456789, true, {'k': 1, 'j': 2}, [7, 8, 7], {'s': 5});
insert into odd (id, n, i, t, ts) values (1, 2, '::1', '00:00:00', '2026-01-02 00:00:00+0000');
insert into odd (id, sm) values (2, {'x': 1});
insert into odd (id, n) values (3, 1)
"""

LOOKING = """
import pathlib
from dbdyno.entry import entry
from dbdyno.wide.spark import SparkAnswer

answered = SparkAnswer.rows

def rows(self):
    seen = [one.read_bytes() for one in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
    assert any(b"pyspark-shell" in one for one in seen)
    assert not any(b"open-sesame" in one for one in seen)
    return answered(self)

SparkAnswer.rows = rows
entry()
"""


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """Yield one JVM with the connector for all tests; a JVM that another test started has no connector."""
    pyspark = pytest.importorskip("pyspark", reason="no pyspark; pip install -r requirements-extra.txt")
    with skipped_on(WideError):
        spark.jars()
    _no_jvm(pyspark)
    made = spark.open_spark_session("local[2]")
    try:
        yield made
    finally:
        made.stop()
        _no_jvm(pyspark)


def _no_jvm(pyspark: Any) -> None:
    context = pyspark.SparkContext
    if context._gateway is not None and context._active_spark_context is None:
        process = context._gateway.proc
        context._gateway.shutdown()
        context._gateway = context._jvm = None
        process.stdin.close()
        process.wait(60)
        gc.collect()  # pyspark's sockets, while their warnings are not heard


def mapped(lab: WideLab, **names: tuple[str, str]) -> WideMap:
    return map_of(lab.keyspace, read_keyspace(lab.session, lab.keyspace), names)


def both(lab: WideLab, found: WideMap, text: str, session: Any) -> tuple[list[str], list[str]]:
    """Return the answers of `wide sql` and of Spark."""
    where = address(lab.dsn)
    with Answer(where, found, text, "map") as answer:
        here = list(answer.rows())
    with spark.SparkAnswer(where, found, text, "map", spark=session) as answer:
        return plain(here), plain(list(answer.rows()))


def test_generated_queries_give_here_and_by_spark_what_postgresql_gives(session: Any, wide_lab: WideLab) -> None:
    seed = int(os.environ.get("DYNO_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}: DYNO_SEED={seed} repeats it")
    dice = random.Random(seed)
    pushed = answered = 0
    with EmbeddedPostgres() as tall, psycopg.connect(**tall.conninfo(), autocommit=True) as conn:
        fill(dice, wide_lab, conn)
        found = mapped(wide_lab, wide=("orders", "customers"))
        for _ in range(QUERIES):
            text = query(dice)
            expected = plain(conn.execute(text).fetchall())
            with spark.SparkAnswer(address(wide_lab.dsn), found, text, "map", spark=session) as answer:
                assert plain(list(answer.rows())) == expected, text
                pushed += any("= ?" in line or "IN (" in line for line in answer.explain())
            answered += bool(expected)
    print(f"{pushed} of {QUERIES} pushed something, {answered} had an answer")
    assert pushed and answered > QUERIES / 5


@pytest.mark.parametrize("relation", ["kids", "parents", "kids_m", "kids_l", "parents_sm"])
def test_every_kind_of_value_is_the_same_here_and_by_spark(session: Any, wide_lab: WideLab, relation: str) -> None:
    wide_lab.run(ODD)
    here, there = both(wide_lab, mapped(wide_lab, odd=("kids", "parents")), f"select * from {relation}", session)
    assert there == here
    assert len(here) == {"kids": 3, "parents": 3, "kids_m": 2, "kids_l": 3, "parents_sm": 2}[relation]


def test_elements_of_types_of_the_users_own_are_the_same(session: Any, wide_lab: WideLab) -> None:
    wide_lab.run(SHOP)
    wide_lab.run(
        "insert into orders_by_customer (customer_id, name, home, phones) values"
        " (1, 'Ada', {street: 's', zip: 7}, {'1', '2'});"
        " insert into orders_by_customer (customer_id, order_date, order_no, tags)"
        " values (1, '2026-01-01', 1, ['a', 'a'])"
    )
    found = mapped(wide_lab, orders_by_customer=("orders", "customers"))
    for name in ("customers", "orders", "customers_home", "customers_phones", "orders_tags", "orders_attrs"):
        here, there = both(wide_lab, found, f"select * from {name}", session)
        assert there == here, name


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("de) values (1, 0.12345678901)", "column de: contains a value that is not a decimal(38,10)"),
        ("de) values (1, 123456789012345678901234.5)", "cannot be represented as Decimal"),
        ("ts) values (1, '1500-01-01 00:00:00+0000')", "an instant before 1582-10-15 cannot be read by Spark"),
    ],
)
def test_what_spark_would_change_is_an_error_that_names_the_column(
    session: Any, wide_lab: WideLab, value: str, said: str
) -> None:
    wide_lab.run(f"create table t (id int primary key, de decimal, ts timestamp); insert into t (id, {value}")
    found = mapped(wide_lab)
    with (
        spark.SparkAnswer(address(wide_lab.dsn), found, "select * from t", "map", spark=session) as answer,
        pytest.raises(WideError) as caught,
    ):
        list(answer.rows())
    assert said in str(caught.value) and caught.value.next_step


def test_a_node_that_does_not_answer_spark_ends_the_question_with_a_sentence(
    session: Any, wide_lab: WideLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide_lab.run("create table t (id int, n int, primary key (id, n)); insert into t (id, n) values (1, 2)")
    found = mapped(wide_lab, t=("kids", "parents"))
    monkeypatch.setattr(spark, "REQUEST_S", 3.0)
    process = wide_lab.node.process
    assert process is not None
    with spark.SparkAnswer(address(wide_lab.dsn), found, "select n from kids", "map", spark=session) as answer:
        os.kill(process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(WideError, match=r"by Spark: .*(time|Timeout)") as caught:
                list(answer.rows())
        finally:
            os.kill(process.pid, signal.SIGCONT)
    assert caught.value.next_step


def test_the_command_answers_and_its_password_is_in_no_command_line(wide_lab: WideLab, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="no pyspark; pip install -r requirements-extra.txt")
    wide_lab.run("create table t (id int, n int, primary key (id, n)); insert into t (id, n) values (1, 2)")
    file = tmp_path / "map.toml"
    target = wide_lab.dsn.replace("//", "//me:open-sesame@")
    assert dbdyno("wide", "map", target, "-o", str(file)).returncode == 0
    # In a file: what stands on this test's own command line must not be found.
    code = tmp_path / "code.py"
    code.write_text(LOOKING)
    given = ["wide", "sql", "select n from t where id = 1", "--map", str(file), "--engine", "spark"]
    more = ["--master", "local[1]", "--format", "csv", "--explain"]
    done = subprocess.run(
        [sys.executable, str(code), *given, *more],
        env={**os.environ, "DBDYNO_CASSANDRA": target},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "n\n2\n"), done.stderr
    assert 'pushed ["id" = ?, 1]' in done.stderr and "open-sesame" not in done.stderr
    assert "WARN" not in done.stderr and "log level" not in done.stderr, "Spark's own words are not the user's"
