"""Accounting of real traces: the Rust reader compared with the slow one in `trace_reference`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb
import pytest
from trace_reference import Call, Session, Wait, read

from dbdyno import _core
from dbdyno.base.json_types import JsonObject

DATA = Path(os.environ.get("DBDYNO_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
TRACES = sorted((DATA / "traces").glob("*.trc*")) if (DATA / "traces").is_dir() else []

TORN = {"broken_trace.trc"}
"""Names of files with glued records, which the reference cannot read."""
WHOLE = pytest.mark.parametrize(
    "path", [path for path in TRACES if not path.name.endswith(tuple(TORN))], ids=lambda p: p.name[-40:]
)
"""Parameter with all traces except those with glued records."""

pytestmark = pytest.mark.skipif(not TRACES, reason="DBDYNO_DATA with traces is not here")


def imported(path: Path, folder: Path) -> JsonObject:
    job = _core.TraceJob(json.dumps({"files": [str(path)]}))
    told = json.loads(job.import_(folder))
    tables = {}
    for table in ("calls", "waits"):
        parts = folder / table
        tables[table] = []
        if parts.is_dir():
            query = f"select * from '{parts}/*.parquet' order by line"
            relation = duckdb.sql(query)
            tables[table] = [dict(zip(relation.columns, r, strict=True)) for r in relation.fetchall()]
    sessions = duckdb.sql(f"select * from '{folder}/sessions.parquet' order by session")
    tables["sessions"] = [dict(zip(sessions.columns, r, strict=True)) for r in sessions.fetchall()]
    return {"told": told, **tables}


def calls_of(sessions: list[Session]) -> list[Call]:
    found = [r for session in sessions for r in session.records if isinstance(r, Call)]
    return sorted(found, key=lambda call: call.line)


def waits_of(sessions: list[Session]) -> list[Wait]:
    found = [r for session in sessions for r in session.records if isinstance(r, Wait)]
    return sorted(found, key=lambda wait: wait.line)


@WHOLE
def test_calls_parents_and_exclusive_figures(path: Path, tmp_path: Path):
    sessions, got = read(path), imported(path, tmp_path)
    expected = calls_of(sessions)
    assert [row["line"] for row in got["calls"]] == [call.line for call in expected]
    line_of = {row["call"]: row["line"] for row in got["calls"]}
    for row, call in zip(got["calls"], expected, strict=True):
        parent = line_of.get(row["parent"])
        assert parent == (call.parent.line if call.parent else None)
        assert row["orphan"] == (call.depth > 0 and call.parent is None)
        assert (row["kind"], row["depth"]) == (call.kind, call.depth)
        assert (row["elapsed_ns"], row["cpu_ns"]) == (call.elapsed * 1000, call.cpu * 1000)
        elapsed, cpu, waited, blocks = call.own()
        assert row["self_elapsed_ns"] == elapsed * 1000
        assert row["self_cpu_ns"] == cpu * 1000
        assert row["self_wait_ns"] == waited * 1000
        names = ("self_physical_reads", "self_consistent_reads", "self_current_reads")
        assert tuple(row[name] for name in names) == blocks


@WHOLE
def test_waits_and_their_owners(path: Path, tmp_path: Path):
    sessions, got = read(path), imported(path, tmp_path)
    expected = waits_of(sessions)
    line_of = {row["call"]: row["line"] for row in got["calls"]}
    told = [(row["line"], row["event"], row["elapsed_ns"], line_of.get(row["call"])) for row in got["waits"]]
    assert told == [
        (wait.line, wait.event, wait.elapsed * 1000, wait.owner.line if wait.owner else None) for wait in expected
    ]


@WHOLE
def test_sessions_close(path: Path, tmp_path: Path):
    sessions, got = read(path), imported(path, tmp_path)
    assert len(got["sessions"]) == len(sessions)
    for row, session in zip(got["sessions"], sessions, strict=True):
        records = session.records
        calls = [r for r in records if isinstance(r, Call)]
        waits = [r for r in records if isinstance(r, Wait)]
        roots = sum(call.elapsed for call in calls if call.parent is None)
        between = sum(wait.elapsed for wait in waits if wait.owner is None)
        whole = sum(segment.elapsed() for segment in session.segments)
        assert row["elapsed_ns"] == whole * 1000
        assert row["call_ns"] == roots * 1000
        assert row["between_ns"] == between * 1000
        assert row["unexplained_ns"] == (whole - roots - between) * 1000
        assert row["call_ns"] == row["cpu_ns"] + row["wait_inside_ns"] + row["unaccounted_ns"]
        assert row["orphans"] == sum(c.depth > 0 and c.parent is None for c in calls)


def named(part: str) -> Path:
    return next(path for path in TRACES if part in path.name)


def test_elapsed_of_all_depths_counts_twice(tmp_path: Path):
    """0.245 s at depth 0, 0.475 s over all depths: the known figures of a well-known trace."""
    got = imported(named("orcl_ora_4321"), tmp_path)
    depth_0 = sum(row["elapsed_ns"] for row in got["calls"] if row["depth"] == 0)
    everything = sum(row["elapsed_ns"] for row in got["calls"])
    assert (round(depth_0 / 1e9, 3), round(everything / 1e9, 3)) == (0.245, 0.475)
    assert got["told"]["totals"]["account"]["all_depths_ns"] == everything


@pytest.mark.parametrize("path", TRACES, ids=lambda p: p.name[-40:])
@pytest.mark.parametrize("by", [["event"], ["statement"], ["kind", "depth"], ["second"], ["file"]])
def test_the_lines_of_a_profile_add_up(path: Path, by: list[str]):
    job = _core.TraceJob(json.dumps({"files": [str(path)]}))
    told = json.loads(job.profile(json.dumps({"by": by})))
    assert sum(row["total_ns"] for row in told["rows"]) == told["elapsed_ns"]
    for row in told["rows"]:
        count, total_ns = (sum(bucket[at] for bucket in row["histogram"]) for at in (2, 3))
        if row["what"] == "call":  # calls with their CPU and waits: the histogram is that of the waits alone
            assert count == row["waits"]
        else:
            assert count == row["count"]
            assert total_ns == row["total_ns"]


@pytest.fixture(scope="module")
def all_traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[_core.TraceJob, Path]:
    """Import all traces into one run; return the job and the run's folder."""
    job, folder = _core.TraceJob(json.dumps({"files": [str(path) for path in TRACES]})), tmp_path_factory.mktemp("all")
    job.import_(folder)
    return job, folder


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"by": ["statement", "event"]},
        {"by": ["kind", "depth"]},
        {"by": ["force"], "top": 3},
        {"by": ["module", "session", "file"]},
        {"by": ["p1", "p2", "object"]},
        {"by": ["class"], "where": "depth = 1 or event ~ 'db file%'"},
        {"by": ["second"], "depth": 0},
        {"where": "elapsed_us > 100 and not kind = close"},
    ],
    ids=str,
)
def test_the_profile_of_an_import_is_that_of_its_traces(request_: JsonObject, all_traces: tuple[_core.TraceJob, Path]):
    job, folder = all_traces
    of_traces = json.loads(job.profile(json.dumps(request_)))
    of_run = json.loads(_core.profile_run(folder, json.dumps(request_)))
    assert of_traces["rows"]
    for name in ("rows", "calls", "elapsed_ns", "statements", "unread", "files", "bytes", "lines"):
        assert of_run[name] == of_traces[name], name


@pytest.mark.parametrize("path", TRACES, ids=lambda p: p.name[-40:])
def test_a_trace_written_from_evidence_has_the_same_account(path: Path, tmp_path: Path):
    first = imported(path, tmp_path / "first")
    written = json.loads(_core.write_trace(tmp_path / "first", tmp_path / "out"))
    second = imported(Path(written["files"][0]["path"]), tmp_path / "second")
    before, after = (told["told"]["totals"]["account"] for told in (first, second))
    assert before == after
