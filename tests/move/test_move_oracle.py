"""Tests of moves out of Oracle without a server: statements are parsed, pieces have no gaps, and the real job reads
from a fake driver with python-oracledb's calls."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import duckdb
import pyarrow
import pytest
import sqlglot
from sqlglot import exp

from command_line import dbdyno, succeeded
from dbdyno.base.errors import MoveError
from dbdyno.move.engines.oracle import source
from dbdyno.move.engines.oracle.source import Extent, Piece, group_extents, select_sql, split_name
from dbdyno.move.engines.oracle.types import DescribedColumn, column_of
from fresh_dice import fresh_dice

COLUMNS = [
    DescribedColumn("ID", "NUMBER", 10, 0),
    DescribedColumn("AMOUNT", "NUMBER", 12, 2),
    DescribedColumn("ANY", "NUMBER", None, None),
    DescribedColumn("At\u00e9", "TIMESTAMP(6) WITH TIME ZONE", None, 6),
    DescribedColumn("FINE", "TIMESTAMP(9)", None, 9),
    DescribedColumn("WHEN", "DATE", None, None),
    DescribedColumn("GAP", "INTERVAL DAY(2) TO SECOND(6)", 2, 6),
    DescribedColumn("NOTE", "VARCHAR2", None, None),
    DescribedColumn("RAWS", "RAW", None, None),
    DescribedColumn("DOC", "XMLTYPE", None, None),
]


def test_every_piece_is_a_statement_of_oracles_at_one_scn_by_rowid() -> None:
    piece = Piece((Extent(70, 4, 128, 8, 65536), Extent(71, 5, 256, 8, 65536)))
    for sql in (select_sql("SALES", 'Or"ders'.replace('"', ""), COLUMNS, 99, one) for one in (piece, None)):
        parsed = sqlglot.parse_one(sql, dialect="oracle")
        tables = list(parsed.find_all(exp.Table))
        assert {(one.db, one.name) for one in tables} == {("SALES", "Orders")}
        assert sql.count("as of scn 99") == len(tables)
        assert "no_index" in sql
        for select in parsed.find_all(exp.Select):
            assert [one.alias_or_name for one in select.expressions] == [one.name for one in COLUMNS]
    assert "between dbms_rowid.rowid_create(1, 70, 4, 128, 0) and dbms_rowid.rowid_create(1, 70, 4, 135, 32767)" in (
        select_sql("S", "T", COLUMNS, 1, piece)
    )
    for text in (source.SCN_SQL, source.TABLE_SQL, source.COLUMNS_SQL, source.EXTENTS_SQL):
        assert sqlglot.parse_one(text, dialect="oracle").find(exp.Select)
    with pytest.raises(MoveError, match="is not an Oracle name"):
        select_sql("S", 'T" where 1=1 --', COLUMNS, 1, None)


def test_pieces_hold_every_block_once() -> None:
    rng = fresh_dice()
    for _ in range(50):
        extents = [Extent(7, n, rng.randrange(1000), blocks := rng.randint(1, 200), blocks * 8192) for n in range(20)]
        wanted = rng.randint(1, 40)
        pieces = group_extents(extents, wanted)
        blocks = [(one.file, one.block + at) for piece in pieces for one in piece.ranges for at in range(one.blocks)]
        assert sorted(blocks) == sorted((one.file, one.block + at) for one in extents for at in range(one.blocks))
        assert len(pieces) <= wanted
        assert sum(piece.bytes for piece in pieces) == sum(one.bytes for one in extents)
    assert group_extents([], 4) == []


def test_what_travels_as_words() -> None:
    kinds = {one.name: (column_of(one).kind, column_of(one).cast) for one in COLUMNS}
    assert kinds["AMOUNT"] == ("decimal", False)
    assert [name for name, (_, cast) in kinds.items() if cast] == ["ANY", "At\u00e9", "FINE", "GAP", "DOC"]
    with pytest.raises(MoveError, match="BFILE, which cannot be moved"):
        column_of(DescribedColumn("B", "BFILE", None, None))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("emp", ("ME", "EMP")),
        ("hr.emp", ("HR", "EMP")),
        ('"Hr"."a.b"', ("Hr", "a.b")),
        ('hr."x', None),
        ("a.b.c", None),
    ],
)
def test_names_are_in_upper_case_unless_they_are_quoted(text: str, found: tuple[str, str] | None) -> None:
    if found is None:
        with pytest.raises(MoveError, match="is not a table name"):
            split_name(text, "me")
    else:
        assert split_name(text, "me") == found


def test_without_the_package_it_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "oracledb", None)
    done = dbdyno("move", "oracle://me:secret@db:1521/x", "--table", "T", "--to", tmp_path / "out")
    assert (done.returncode, "pip install 'dbdyno[oracle]'" in done.stderr) == (2, True), done.stderr
    assert "secret" not in done.stderr
    assert not (tmp_path / "out").exists()
    into = dbdyno("move", "oracle://me@db:1521/x", "--table", "T", "--to", "postgresql://h/d", "--job", tmp_path / "j")
    assert (into.returncode, "a move from Oracle writes a folder" in into.stderr) == (2, True), into.stderr


class Driver:
    """Fake of python-oracledb that supports the calls that the job makes and returns the test's rows."""

    class Error(Exception):
        """Error of the fake driver."""

    DatabaseError = Error

    class Connection:
        """Connection of the fake driver with the attributes that the job reads."""

        fetch_df_batches = None

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = 0

    def connect(self, **_: Any) -> Self:
        """Return a session."""
        return self

    cursor = connect

    def close(self) -> None:
        """Do nothing: the fake holds nothing open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, sql: str, **_: Any) -> SimpleNamespace:
        """Return rows of the data dictionary."""
        found: list[Any] = {
            source.SCN_SQL: [(4711, "2026-11-23 10:00:00.000000")],
            source.TABLE_SQL: [(70, 70, None, "NO", "N")],
            source.COLUMNS_SQL: [("ID", "NUMBER", 10, 0, None, "NO"), ("NOTE", "VARCHAR2", None, None, "B", "NO")],
            source.EXTENTS_SQL: [(70, 4, 128, 8, 65536), (70, 4, 256, 8, 65536)],
        }.get(sql, [])
        return SimpleNamespace(fetchone=lambda: found[0] if found else None, fetchall=lambda: found)

    def fetch_df_batches(self, sql: str, **_: Any) -> Any:
        """Yield two rows of each piece; the first `fails` calls raise "snapshot too old"."""
        self.asked.append(sql)
        if len(self.asked) <= self.fails:
            raise self.Error("ORA-01555: snapshot too old")
        number = pyarrow.array([len(self.asked), None], pyarrow.decimal128(10, 0))
        yield pyarrow.table({"ID": number, "NOTE": ["x", "y"]})


def test_a_job_reads_each_piece_once_and_goes_on_at_its_scn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(source, "driver", lambda: driver)
    driver.fails = 1
    words = ("--table", "sales.orders", "--to", tmp_path / "out", "--workers", "1")
    done = dbdyno("move", "oracle://me:secret@db/x", *words)
    assert (done.returncode, "the undo data of the SCN is no longer available" in done.stderr) == (2, True), done.stderr
    begun = len(driver.asked)
    done = succeeded("move", "resume", tmp_path / "out", "--source", "oracle://me:secret@db/x", "--verify", "files")
    assert "8 rows in 4 of 4 chunks" in done.stdout
    assert "All as of one instant: 2026-11-23 10:00:00.000000" in done.stdout
    assert len(set(driver.asked[begun:])) == len(driver.asked[begun:])
    assert all("as of scn 4711" in sql for sql in driver.asked)
    with duckdb.connect() as conn:
        conn.execute(f"select count(*), count(ID), typeof(any_value(ID)) from '{tmp_path}/out/*.parquet'")
        assert conn.fetchone() == (8, 4, "DECIMAL(10,0)")
    assert "secret" not in (tmp_path / "out" / "_dbdyno" / "manifest.json").read_text()
    again = dbdyno("move", "status", tmp_path / "out")
    assert (again.returncode, "complete" in again.stdout) == (0, True), again.stderr
