"""Connections for a few statements on files: isolated from one another, and without state."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dbdyno.evidence.memory import close_tables, file_connection, tables_connection


def test_what_one_holds_no_other_sees() -> None:
    with file_connection() as one, file_connection() as other:
        one.execute("create temp table held as select 1 as a")
        with pytest.raises(duckdb.CatalogException):
            other.execute("from held")
    with file_connection() as later, pytest.raises(duckdb.CatalogException):
        later.execute("from held")


def test_a_name_is_a_table_or_nothing() -> None:
    rows = duckdb.values([1])
    with file_connection() as connection, pytest.raises(duckdb.CatalogException):
        connection.execute("from rows")
    assert rows


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for value in range(3):
        with file_connection() as connection:
            connection.execute(f"copy (select {value} as a) to '{path}' (format parquet)")
        with file_connection() as connection:
            assert connection.execute("select a from read_parquet(?)", [str(path)]).fetchone() == (value,)


def test_nothing_is_left_in_the_shared_database() -> None:
    with file_connection() as connection:
        assert connection.execute("select count(*) from duckdb_tables() where not internal").fetchone() == (0,)


def databases() -> set[str]:
    """Return the names of the databases that are attached for tables."""
    with file_connection(in_order=True) as connection:
        found = connection.execute("select database_name from duckdb_databases()").fetchall()
    return {name for (name,) in found if name.startswith("tables_")}


def test_tables_of_one_connection_are_not_found_by_another() -> None:
    one, other = tables_connection(), tables_connection()
    one.execute("create table held as select 1 as a")
    with pytest.raises(duckdb.CatalogException):
        other.execute("from held")
    close_tables(other)
    assert one.execute("from held").fetchall() == [(1,)]
    close_tables(one)


def test_tables_are_freed_when_they_are_closed_and_when_they_are_forgotten() -> None:
    before = databases()
    one, other = tables_connection(), tables_connection()
    assert len(databases() - before) == 2
    close_tables(one)
    assert len(databases() - before) == 1
    del other
    assert databases() == before
