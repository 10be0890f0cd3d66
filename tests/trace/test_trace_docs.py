"""The page on traces matches the program: its columns and dimensions exist, and imports have these columns."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from trace_text import REAL, example, needs_data, trace

from command_line import dbdyno
from dbdyno.evidence.trace_tables import TABLES
from dbdyno.trace.columns import COLUMNS, PARAMETERS
from dbdyno.trace.expression import FUNCTIONS
from dbdyno.trace.profile import DIMENSIONS
from dbdyno.trace.source import Options, import_traces

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "trace.md").read_text()
EXAMPLES = ROOT / "examples"


def columns(table: str) -> dict[str, str]:
    return dict(column.split() for column in TABLES[table].split(", "))


@pytest.mark.parametrize("table", TABLES)
def test_the_page_has_every_column(table: str):
    (row,) = re.findall(rf"^\| `{table}` \|.*$", PAGE, re.MULTILINE)
    assert re.findall(r"`(\w+)`", row.split("|")[3]) == list(columns(table))


def test_the_page_has_every_dimension():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `--by`"))
    assert set(re.findall(r"`(\w+)`", row)) == set(DIMENSIONS)


def test_expressions_know_every_dimension():
    assert set(DIMENSIONS) <= set(COLUMNS)


def test_the_page_names_every_column_parameter_and_function():
    for name in (*COLUMNS, *PARAMETERS):
        assert f"`{name}`" in PAGE, name
    for name in FUNCTIONS:
        assert f"`{name}`" in PAGE or f"`{name}(" in PAGE, name


def imported_types(folder: Path, files: list[str]) -> dict[str, dict[str, str]]:
    import duckdb

    run, _ = import_traces(files, folder / "run", options=Options(binds=True))
    found = {}
    for table in TABLES:
        parts = [*run.path.glob(f"{table}/*.parquet"), *run.path.glob(f"{table}.parquet")]
        if parts:
            names = ", ".join(f"'{part}'" for part in parts)
            rows = duckdb.sql(f"describe select * from read_parquet([{names}])").fetchall()
            found[table] = {row[0]: row[1].lower() for row in rows}
    return found


def test_an_import_has_the_columns_that_are_declared(tmp_path: Path):
    path = tmp_path / "made.trc"
    path.write_text(trace())
    found = imported_types(tmp_path, [str(path)])
    assert {"calls", "waits", "statements", "sessions", "files"} <= set(found)
    for table, types in found.items():
        assert types == columns(table), table


@needs_data
def test_an_import_of_real_files_has_them_too(tmp_path: Path):
    found = imported_types(tmp_path, [str(path) for path in REAL])
    assert set(found) >= set(TABLES) - {"links", "client_calls", "wire", "looks"}
    for table, types in found.items():
        assert types == columns(table), table


def test_the_example_is_what_its_maker_makes():
    """Write it again: python tests/trace/test_trace_docs.py"""
    assert (EXAMPLES / "orders.trc").read_text() == example()


def test_the_example_shows_what_the_page_says():
    from dbdyno.trace.check import check_page
    from dbdyno.trace.profile import profile_page

    name = str(EXAMPLES / "orders.trc")
    assert check_page([name])["exit"] == 0
    rows = profile_page([name])["profile"]["rows"]
    assert {"think time", "log file sync", "CPU"} <= {row["name"] for row in rows}


@pytest.mark.parametrize("command", ["profile", "sql", "check"])
def test_what_the_page_shows_is_what_comes_out(command: str):
    """With COLUMNS=96, from the folder of the clone."""
    found = re.search(rf"```\n(dbdyno trace {command} .*examples/.*)\n```\n\n```\n([^`]*)```", PAGE)
    assert found, command
    words = shlex.split(found[1])[1:]
    done = dbdyno(*words, cwd=ROOT, COLUMNS="96")
    assert done.stdout == found[2]


if __name__ == "__main__":
    (EXAMPLES / "orders.trc").write_text(example())


def test_the_costs_of_samplers_are_those_of_the_latest_bench():
    """The page on recording repeats figures of `benches/wait_ways.py`, which may have run again since."""
    figures = (ROOT / "docs" / "explanation" / "performance.md").read_text()
    page = (ROOT / "docs" / "how-to" / "record.md").read_text()
    rows = {
        "nothing again": r"nothing, a second time",
        "sites": r"`trace record --exact` \(probes\)",
        "read": r"`trace record` \(reading\)",
        "snap by memory": r"`snap watch`, `snap top` by memory",
        "snap by queries": r"`snap watch`, `snap top` by queries",
        "pg_wait_sampling": r"\[pg_wait_sampling\]\S+",
    }
    for way, row in rows.items():
        (told,) = re.findall(rf"^\| {row} \|[^|]*\| ([\d.]+), ([\d.]+) \|", page, re.MULTILINE)
        of_bench = [
            re.findall(rf"^\| select-only beside {way}: {what} .*\| nothing \| ([\d.]+) \|", figures, re.MULTILINE)[0]
            for what in ("CPU of a transaction", "throughput")
        ]
        assert [float(one) for one in told] == [pytest.approx(float(one), abs=0.0051) for one in of_bench], way
