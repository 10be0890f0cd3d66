"""Latencies from a recorded run beside snapshots: those of every execution, by the snapshots' statement identifiers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from snapshot_help import Lab, section

from command_line import dbdyno
from dbdyno.base.errors import SnapshotError
from dbdyno.evidence.run import SCHEMA, Run
from dbdyno.snapshot.plans.command import PlanOptions, page_of_recordings
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording
from kernel_probes import require_probes

CALLS = 60


def test_a_recording_gives_the_report_latencies_of_every_execution(lab: Lab, tmp_path: Path):
    require_probes()
    run = tmp_path / "now"
    assert lab.engine.pid is not None
    lab.run("create table t (id int primary key, v int)", "insert into t select g, g from generate_series(1, 500) g")
    first = lab.take()
    with recording(ServerProcess(lab.engine.pid), run, RecordingOptions(cost_limit=0, mode="sites")):
        lab.run(*(f"select v from t where id = {at}" for at in range(CALLS)), "select count('secret-4711') from t")
    last = lab.take()
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "warnings": ["The kernel lost 3 notes in 1 gap."]}))
    asked = page_of_recordings(lab.store, [run], PlanOptions())
    assert "now: The kernel lost 3 notes in 1 gap." in section(asked, "logs")["notes"], "not all executions were seen"
    (read,) = section(asked, "logs")["tables"][0]["rows"]
    assert read["form"] == "trace record"
    with Interval(lab.store, first, last) as interval:
        model = report(interval)
    latency = next(one for one in section(model, "sql")["tables"] if one["title"] == "Latency of executions")
    (row,) = [row for row in latency["rows"] if row["begins"].startswith("select v from t")]
    assert row["from"] == "trace record"
    assert row["logged"] == f"{CALLS} of {CALLS}"
    assert 0 < row["p50"] <= row["p95"] <= row["p99"] <= row["worst"]
    assert section(model, "plans")["not_measured"], "a recording has no plans: it stands for no log"
    kept = b"".join(path.read_bytes() for path in (lab.store.folder / "plans").rglob("*") if path.is_file())
    assert b"4711" not in kept


def test_what_is_no_recording_is_refused_with_the_next_step(lab: Lab, tmp_path: Path):
    with pytest.raises(SnapshotError, match="not a run folder"):
        page_of_recordings(lab.store, [tmp_path], PlanOptions())
    (tmp_path / "other").mkdir()
    other = Run(tmp_path / "other", {"schema": SCHEMA, "kind": "trace", "format": "oracle 10046"})
    other.save(status="complete")
    with pytest.raises(SnapshotError, match="is not a recording of a PostgreSQL") as refused:
        page_of_recordings(lab.store, [other.path], PlanOptions())
    assert "dbdyno trace record" in (refused.value.next_step or "")
    looks = {"schema": SCHEMA, "kind": "trace", "format": "postgresql waits", "options": {"mode": "read"}}
    Run(tmp_path / "other", looks).save(status="complete")
    with pytest.raises(SnapshotError, match="cannot distinguish short executions") as refused:
        page_of_recordings(lab.store, [tmp_path / "other"], PlanOptions())
    assert "--exact" in (refused.value.next_step or "")
    both = dbdyno("snap", "plans", "--trace", tmp_path, "--log", tmp_path)
    assert both.returncode == 2
    assert "one of --log, --trace and --from-server" in both.stderr
