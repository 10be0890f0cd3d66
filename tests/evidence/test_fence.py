"""`dbdyno sql` reads evidence and can do nothing else, whatever the query."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import checked, dbdyno
from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.query import Answer, connect, query
from dbdyno.evidence.query_limits import memory_bytes, private_folder
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from soaked import first

MANY = 100_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with one block and one part of calls."""
    import duckdb

    made = new_run(tmp_path_factory.mktemp("fence") / "runs", "x", {"kind": "experiment"})
    (made.path / "calls").mkdir()
    with duckdb.connect() as connection:
        connection.sql(f"select 'a' as arm, range as elapsed_ns, '=1+1' as statement from range({MANY})").write_parquet(
            str(made.path / "calls" / "b000000.parquet")
        )
    made.add_block(Block(0, "measure", 1, 2, 3, [SliceRecord(0, 0)]))
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ATTACKS = [
    "copy (select 1) to '{run}/blocks/b000000.json'",
    "copy (select 'x') to '{run}/report.html' (format csv)",
    "select 1; copy (select 1) to '{run}/report.html'",
    "attach '{run}/new.duckdb'",
    "attach '{run}/new.duckdb' as n; create table n.t as select 1",
    "create table t as select 1",
    "create view calls as select 1",
    "drop view calls",
    "insert into slices values (1, 'x', 1, true)",
    "export database '{run}/all'",
    "explain analyze copy (select 1) to '{run}/x.csv'",
    "prepare p as copy (select 1) to '{run}/x.csv'",
    "set lock_configuration = false",
    "set memory_limit = '1TB'",
    "reset allowed_directories",
    "pragma enable_logging",
    "call enable_logging('QueryLog', storage = 'file', storage_path = '{run}/log')",
    "install httpfs",
    "load '{run}/x.duckdb_extension'",
    "pivot calls on arm using count(*)",
    "vacuum",
    "checkpoint",
    "begin",
    "with t as (copy (select 1) to '{run}/report.html') select * from t",
    "with t as (copy (select 1) to '{run}/blocks/b000000.json'), u as (select 1) select * from u",
    "with t as (insert into slices values (1, 'x', 1, true) returning *) select * from t",
    "with t as (update slices set counts = false returning *) select * from t",
    "with t as (delete from slices returning *) select * from t",
    "from query('with t as (copy (select 1) to ''{run}/x.csv'') select * from t')",
    "from (with t as (copy (select 1) to '{run}/x.csv') select * from t)",
    "describe with t as (copy (select 1) to '{run}/x.csv') select * from t",
    "",
    "-- nothing",
    "select",
]
READS = [
    "select * from read_text('/etc/passwd')",
    "select * from read_csv('/etc/passwd')",
    "select * from read_parquet('https://example.org/x.parquet')",
    "select * from glob('/etc/*')",
    "select * from '/etc/passwd'",
    "select * from read_text('{run}/../../../../../../etc/passwd')",
    "select getenv('HOME')",
    "select * from run",
    "select * from connection",
    "select * from enable_logging('QueryLog', storage = 'file', storage_path = '{run}/log')",
]


@pytest.mark.parametrize("attack", [*ATTACKS, *READS])
def test_only_one_select_over_the_run_is_carried_out(run: Run, attack: str) -> None:
    before = contents(run.path)
    with pytest.raises(EvidenceError):
        query(run, attack.format(run=run.path))
    assert contents(run.path) == before


@pytest.mark.parametrize(
    "attack",
    [
        "copy (select 1) to '{run}/report.html'",
        "with t as (copy (select 1) to '{run}/report.html') select * from t",
        "select * from read_text('/etc/passwd')",
    ],
)
def test_the_library_has_the_same_fence(run: Run, attack: str) -> None:
    import dbdyno

    with pytest.raises(EvidenceError):
        dbdyno.sql(attack.format(run=run.path), run).fetchall()
    assert not (run.path / "report.html").exists()


@pytest.mark.parametrize(
    "read",
    [
        "describe calls",
        "summarize calls",
        "show tables",
        "from calls limit 1",
        "values (1)",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 3) select * from t",
        "with a as materialized (select 1 as x) select * from a union all from a",
        "select (select max(elapsed_ns) from calls), x from (values (1), (2)) v(x) order by 2",
        "select * from query_table('calls') limit 1",
    ],
)
def test_what_only_reads_is_let_through(run: Run, read: str) -> None:
    assert query(run, read)[1]


def test_memory_and_spilling_are_bounded_before_the_door_is_locked(run: Run) -> None:
    connection, _ = connect(run)
    names = ("memory_limit", "temp_directory", "lock_configuration", "enable_external_access")
    held = dict(connection.execute("select name, value from duckdb_settings()").fetchall())
    connection.close()
    assert [held[name] for name in names[1:]] == [str(private_folder()), "true", "false"]
    assert private_folder().stat().st_mode & 0o777 == 0o700
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory_bytes() <= physical // 2


def test_the_folder_for_spilling_goes_with_the_process() -> None:
    code = "from dbdyno.evidence.query_limits import private_folder\nprint(private_folder())"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert not Path(done.stdout.strip()).exists()


def test_columns_of_one_name_are_told_apart(run: Run) -> None:
    assert query(run, "select 1 as a, 2 as a, 3 as a")[0] == ["a", "a_2", "a_3"]


def test_rows_come_as_they_are_asked_for(run: Run) -> None:
    with Answer(run, "select * from range(1000000000000)") as answer:
        assert list(answer.rows(3)) == [(0,), (1,), (2,)]


def sql(run: Run, *words: str) -> subprocess.CompletedProcess[str]:
    return dbdyno("sql", "--run", run.path, *words)


def test_a_table_of_many_rows_shows_the_first_and_says_so(run: Run) -> None:
    done = checked(sql(run, "select * from calls", "--top", "10"))
    assert len(done.stdout.splitlines()) == 11
    assert "the first 10 rows; there are more" in done.stderr
    assert "--format csv shows all of them" in done.stderr
    assert "there are more" not in sql(run, "select 1", "--top", "1").stderr


def test_csv_and_json_have_all_rows(run: Run, tmp_path: Path) -> None:
    rows = list(
        csv.reader(io.StringIO(sql(run, "select arm, elapsed_ns, statement from calls", "--format", "csv").stdout))
    )
    assert (len(rows), rows[0], rows[-1]) == (MANY + 1, ["arm", "elapsed_ns", "statement"], ["a", "99999", "=1+1"])
    sql(run, "select * from calls limit 3", "-o", str(tmp_path / "out.json"))
    assert [row["elapsed_ns"] for row in json.loads((tmp_path / "out.json").read_text())] == [0, 1, 2]
    assert json.loads(sql(run, "select 1 where false", "--format", "json").stdout) == []


def test_csv_for_a_spreadsheet_holds_no_formula(run: Run) -> None:
    safe = sql(run, "select statement, -1.5 as n, '-2' as t from calls limit 1", "--format", "csv", "--csv-safe")
    assert safe.stdout == "statement,n,t\n'=1+1,-1.5,-2\n"
    exact = sql(run, "select statement from calls limit 1", "--format", "csv")
    assert exact.stdout == "statement\n=1+1\n"


@pytest.mark.parametrize("form", first("csv", "jsonl", "json"))
def test_a_reader_that_stops_early_ends_it_quietly(run: Run, form: str) -> None:
    command = [sys.executable, "-m", "dbdyno", "sql", "--run", str(run.path), "select * from calls", "--format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0
