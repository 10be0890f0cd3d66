"""Tests of moves out of a real MariaDB: its tables come back unchanged, by files and from server to server."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from move_lab import Lab

from command_line import checked, dbdyno, succeeded
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.move.ledger.folder import Ledger
from mariadb_server import MariaServer, missing
from together import meanwhile

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("move_mariadb"),
]

TYPES = """
create table types (
    id bigint unsigned primary key, t tinyint, tu tinyint unsigned, flag tinyint(1), s smallint, su smallint unsigned,
    m mediumint, i int, iu int unsigned, b bigint, bu bigint unsigned, d decimal(12,3), dw decimal(65,10),
    f float, g double, da date, ti time(3), dt datetime(6), ts timestamp(6) null, y year, bi bit(9),
    c char(5), v varchar(40), la varchar(20) character set latin1, tx text, e enum('a','b,c'), st set('x','y','z'),
    j json, bn binary(4), vb varbinary(20), bl blob, p point
) default charset = utf8mb4
"""
FULL = """
insert into types values
 (18446744073709551615, -128, 255, 7, -32768, 65535, -8388608, -2147483648, 4294967295, -9223372036854775808,
  18446744073709551615, -123456789.012, 1234567890123456789012345678901234567890.0123456789, 0.1, 1e-308, '2026-02-28',
  '23:59:59.999', '9999-12-31 23:59:59.999999', '2026-03-29 01:30:00.5', 2155, b'101010101', 'ab', 'tab\\there \\\\N',
  'gr\u00fcn', 'line\\nbreak \u4e2d\U0001f600', 'b,c', 'x,z', '{"a": [1, null]}', 0x00ff0a5c, 0x09, 0x0009275cff,
  point(1.5, -2)),
 (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.0, 0, '0000-01-01', '00:00:00', '1000-01-01', null, 1901, b'0', '', '', '',
  '', 'a', '', 'null', '', '', '', null),
 (1, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, null, null, null, null, null, null, null, null, null, null)
"""


def _bytes(name: str) -> str:
    """Return the bytes of a value; text of another character set is converted to UTF-8."""
    return f"convert(`{name}` using utf8mb4)" if name == "la" else f"`{name}`"


class Maria(Lab):
    """A MariaDB beside the PostgreSQL of `Lab`."""

    def __init__(self, engine: EmbeddedPostgres, server: MariaServer, folder: Path) -> None:
        super().__init__(engine, folder)
        self.server = server
        self.url = server.dsn

    def do(self, *statements: str) -> None:
        """Execute statements in MariaDB."""
        with contextlib.closing(self.server.connect(database="test")) as conn, conn.cursor() as cursor:
            cursor.execute("set sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
            for statement in statements:
                cursor.execute(statement)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in MariaDB."""
        opened = self.server.connect(database="test", charset="utf8mb4")
        with contextlib.closing(opened) as conn, conn.cursor() as cursor:
            cursor.execute("set time_zone = '+00:00'")
            cursor.execute(query)
            return list(cursor.fetchall())

    def same(self, one: str, other: str) -> bool:
        """Return True if two tables have the same rows, compared as bytes by the server."""
        names = [row[0] for row in self.ask(f"show columns from {one}")]
        listed = ", ".join(f"quote(hex(if(`{name}` is null, null, {_bytes(name)})))" for name in names)
        found = [self.ask(f"select concat_ws('|', {listed}) from {table} order by 1") for table in (one, other)]
        return found[0] == found[1]

    def out_of(self, *words: object) -> Any:
        """Run `dbdyno move` from MariaDB into the folder `out`."""
        return dbdyno("move", self.url, "--to", self.out, *words)


@contextlib.contextmanager
def fresh(engine: EmbeddedPostgres, server: MariaServer, folder: Path) -> Iterator[Maria]:
    """Return both servers, each with an empty schema."""
    with Maria(engine, server, folder) as made:
        with contextlib.closing(server.connect()) as conn, conn.cursor() as cursor:
            cursor.execute("drop database if exists test")
            cursor.execute("create database test character set utf8mb4")
        yield made


@pytest.fixture
def types(maria: Maria) -> Maria:
    """Create a table with a column of every type, with its extreme values."""
    maria.do(TYPES, FULL)
    return maria


def numbered(maria: Maria, rows: int = 40_000) -> None:
    """Create a table with skewed keys, most of them in a small range."""
    maria.do(
        "create table t (id bigint primary key, x varchar(60), n decimal(10,2))",
        f"insert into t select if(seq % 10, seq, seq * 1000000), repeat(md5(seq), 1), seq / 4 from seq_1_to_{rows}",
        "analyze table t",
    )


def test_every_type_comes_back_as_it_was(types: Maria) -> None:
    done = checked(types.out_of("--table", "types", "--verify", "source"))
    assert "p: as WKB, which has no SRID" in done.stderr
    assert "the source, read again in the same snapshot, gave the same rows" in done.stdout
    back = succeeded("move", types.out, "--to", types.url, "--table", "types2", "--create", "--verify", "source")
    assert "the staged rows, read again from the server, were those of the files" in back.stdout
    assert types.same("types", "types2")
    made = {row[0]: row[1] for row in types.ask("show columns from types2")}
    assert made == {row[0]: row[1] for row in types.ask("show columns from types")}
    assert [row[0] for row in types.ask("show tables")] == ["types", "types2"], "no staging table is left"


def test_values_are_what_another_reader_finds(types: Maria) -> None:
    assert types.out_of("--table", "types").returncode == 0
    with contextlib.closing(duckdb.connect()) as conn:
        conn.execute("set timezone = 'UTC'")
        found = conn.execute(
            "select id::varchar, d::varchar, dw, f, ti::varchar, dt::varchar, ts::varchar, y, bi, la, st, bn::varchar"
            f" from read_parquet('{types.out}/*.parquet') where id > 1"
        ).fetchall()
    assert found == [
        (
            "18446744073709551615",
            "-123456789.012",
            "1234567890123456789012345678901234567890.0123456789",
            pytest.approx(0.1, rel=1e-7),
            "23:59:59.999",
            "9999-12-31 23:59:59.999999",
            "2026-03-29 01:30:00.5+00",
            2155,
            "101010101",
            "gr\u00fcn",
            "x,z",
            "\\x00\\xFF\\x0A\\x5C",
        )
    ]


def test_what_no_arrow_type_holds_travels_as_text(maria: Maria) -> None:
    maria.do(
        "create table odd (id int primary key, d date, t time(1), ts timestamp null)",
        "insert into odd values (1, '0000-00-00', '-838:59:59.0', null)",
        "insert into odd values (2, '2026-00-10', '800:00:00.5', '0000-00-00')",
    )
    done = checked(maria.out_of("--table", "odd"))
    assert "the column is moved as text; everything is read again, as of a new instant" in done.stderr
    succeeded("move", maria.out, "--to", maria.url, "--table", "odd2", "--create")
    assert maria.same("odd", "odd2")


def test_ranges_are_cut_where_rows_are(maria: Maria) -> None:
    numbered(maria)
    done = checked(maria.out_of("--table", "t", "--piece", "256KiB", "--workers", "3", "--verify", "files"))
    assert maria.files("count(*), count(distinct id), sum(id), sum(n)") == maria.ask(
        "select count(*), count(distinct id), sum(id), sum(n) from t"
    )
    sizes = sorted(record["rows"] for record in Ledger.open(maria.out).records().values())
    assert len(sizes) >= 6
    assert sizes[-1] < 4 * 40_000 / len(sizes), sizes
    assert "rows read by its handlers" in done.stdout


def test_a_table_that_was_just_filled_is_cut_though_the_server_does_not_know_its_length(maria: Maria) -> None:
    maria.do("create table t (id int primary key, x varchar(60))")
    maria.do("insert into t select seq, repeat(md5(seq), 2 - seq % 2) from seq_1_to_60000")
    checked(maria.out_of("--table", "t", "--piece", "256KiB", "--workers", "3"))
    assert len(list((maria.folder / "out").glob("part-*.parquet"))) > 5


def test_all_workers_read_one_instant_while_money_moves(maria: Maria) -> None:
    numbered(maria, 8_000)
    maria.do("update t set n = 0")
    moved = [0]

    def writer(stop: threading.Event) -> None:
        with contextlib.closing(maria.server.connect(database="test")) as conn, conn.cursor() as cursor:
            while not stop.wait(0.001):
                moved[0] += cursor.execute("update t set n = n + if(id = 1, -1, 1) where id in (1, 7999)")

    with meanwhile(writer):
        for turn in range(2):
            maria.out = maria.folder / f"out{turn}"
            checked(maria.out_of("--table", "t", "--piece", "64KiB", "--workers", "3", "--verify", "source"))
            assert maria.files("sum(n), count(*)") == [(0, 8_000)]
    assert moved[0] > 0
    (total,) = maria.ask("select sum(n), count(*) from t")
    assert total == (0, 8_000)


def test_without_the_privilege_there_is_one_worker_and_it_is_said(maria: Maria) -> None:
    numbered(maria, 20_000)
    maria.do(
        "create or replace user reader@localhost identified by 'r'",
        "create or replace user reader@127.0.0.1 identified by 'r'",
        "grant select on test.* to reader@localhost, reader@127.0.0.1",
    )
    done = succeeded(
        "move",
        maria.server.dsn_of("reader:r"),
        "--to",
        maria.out,
        "--table",
        "t",
        "--piece",
        "256KiB",
        "--workers",
        "4",
    )
    assert "one worker: several workers need FLUSH TABLES WITH READ LOCK" in done.stderr
    assert {record["worker"] for record in Ledger.open(maria.out).records().values()} == {0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "nowhere"), "there is no such table or view"),
        (("--table", "aria"), "its engine aria keeps"),
        (("--table", "t", "--where", "id > 1) or (1=1"), "--where, line 1, column 7"),
        (("--table", "t", "--where", "id > 1 /*!50000 or 1*/"), "the comment is not closed, or MariaDB executes it"),
        (("--table", "t", "--columns", "y"), "has no column 'y'"),
        (("--query", "select 1; drop table t"), "';' is unmatched or not allowed here"),
    ],
)
def test_what_cannot_be_is_one_clear_error(maria: Maria, words: tuple[str, ...], said: str) -> None:
    maria.do("create table t (id int primary key)", "create table aria (id int) engine = aria")
    done = maria.out_of(*words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not maria.out.exists()


def test_merge_writes_only_what_differs_byte_by_byte(maria: Maria) -> None:
    maria.do(
        "create table t (id int primary key, x varchar(20))",
        "insert into t values (1, 'A'), (2, 'same'), (3, 'pad')",
        "create table s (id int primary key, x varchar(20))",
        "insert into s values (1, 'a'), (2, 'same'), (3, 'pad '), (4, 'new')",
    )
    assert maria.out_of("--table", "s").returncode == 0
    done = succeeded("move", maria.out, "--to", maria.url, "--table", "t", "--mode", "merge", "--key", "id")
    assert "1 row added, 2 changed, 1 the same" in done.stdout
    assert maria.same("t", "s")
    again = dbdyno("move", maria.out, "--to", maria.url, "--table", "t", "--mode", "update", "--key", "id")
    assert "0 rows changed, 4 the same" in again.stdout


def test_a_merge_without_an_index_of_its_key_is_refused(maria: Maria) -> None:
    """Without an index the server scans the whole table for each row: ten minutes for 500,000 rows, silently."""
    maria.do("create table t (id int primary key, x text)", "insert into t values (1, 'a')")
    maria.do("create table u (id int, x text, key (x(5), id))")
    assert maria.out_of("--table", "t").returncode == 0
    words = ("move", maria.out, "--to", maria.url, "--table", "u", "--mode", "merge", "--key", "id")
    done = dbdyno(*words)
    assert (done.returncode, "has no index that begins with a column of the key (id)" in done.stderr) == (2, True)
    assert "next: add one with: alter table u add index (`id`)" in done.stderr
    maria.do("alter table u add index (id)")
    assert dbdyno(*words).returncode == 0


def test_a_load_that_fails_changes_nothing(maria: Maria) -> None:
    numbered(maria, 3_000)
    assert maria.out_of("--table", "t").returncode == 0
    maria.do(
        "create table u (id bigint primary key, x varchar(5), n decimal(10,1))", "insert into u values (1, 'a', 0)"
    )
    refused = dbdyno("move", maria.out, "--to", maria.url, "--table", "u", "--mode", "replace")
    assert (refused.returncode, "Data too long for column 'x'" in refused.stderr) == (2, True), refused.stderr
    assert maria.ask("select id, x from u") == [(1, "a")]
    assert sorted(row[0] for row in maria.ask("show tables")) == ["t", "u"]
    maria.do("alter table u modify x varchar(60)")
    rounded = dbdyno("move", maria.out, "--to", maria.url, "--table", "u", "--mode", "replace")
    assert rounded.returncode == 1
    assert "NOT the same: column n (decimal(10,1)) does not store 1,500 values exactly" in rounded.stdout


def test_from_mariadb_to_postgresql_and_back(types: Maria) -> None:
    types.run("create schema other")
    succeeded(
        *("move", types.url, "--to", types.dsn, "--job", types.folder / "job", "--table", "types"),
        *("--into", "types", "--create", "--verify", "source"),
    )
    assert types.rows("select id::text, bu::text, bi::text, ti::text, j::text from types where id > 1") == [
        ("18446744073709551615", "18446744073709551615", "101010101", "23:59:59.999", '{"a": [1, null]}')
    ]
    types.do("create table back like types")
    succeeded(
        *("move", types.dsn, "--to", types.url, "--job", types.folder / "home", "--table", "types"),
        *("--into", "back", "--verify", "source"),
    )
    assert types.same("types", "back")
    assert types.rows("select count(*) from pg_class where relname like 'dbdyno_move%'") == [(0,)]
    assert [row[0] for row in types.ask("show tables")] == ["back", "types"]


def test_from_mariadb_to_mariadb_and_to_arrow(types: Maria) -> None:
    succeeded(
        *("move", types.url, "--to", types.url, "--job", types.folder / "job", "--table", "types"),
        *("--into", "copy", "--create", "--verify", "source"),
    )
    assert types.same("types", "copy")
    path = types.folder / "types.arrow"
    assert dbdyno("move", types.url, "--to", path, "--table", "types", "--verify", "files").returncode == 0
    back = succeeded("move", path, "--to", types.url, "--table", "copy", "--mode", "replace")
    assert "the table emptied and 3 rows added" in back.stdout
    assert types.same("types", "copy")
