"""Causes of lock waits, in evidence written by hand; test_record_holders.py tests them on live servers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trace_evidence import Evidence

from dbdyno.study.analysis.traces.blocks import is_light
from dbdyno.study.analysis.traces.compare import compare_traces
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.trace.conditions import restrict
from dbdyno.trace.holders import THINK, WORK, holders
from dbdyno.trace.source import open_traces

ROW, SYNC, WRITE = "Lock:transactionid", "IO:WALSync", "LWLock:WALWrite"


def made(rounds: int, *, sync_us: int, waits: bool, think_us: int = 0) -> Evidence:
    """Return two sessions: the first updates a row, waits for its client if `think_us` is set, and commits; the second,
    if `waits` is set, waits for the row from 100 us after the update until 30 us after the flush.
    """
    evidence = Evidence()
    evidence.statement("upd", "update hot set n = n + 1")
    evidence.statement("end", "commit")
    t = 0
    for _ in range(rounds):
        evidence.call("exec", "upd", end_us=t + 100, elapsed_us=100, cpu_us=100, session=0)
        begun = t + 200
        evidence.wait(
            "Client:ClientRead", "idle", end_us=t + 100 + 500 + think_us, elapsed_us=500 + think_us, think=True
        )
        over = t + 100 + 500 + think_us + 20 + sync_us
        sync = evidence.wait(SYNC, "commit", end_us=over, elapsed_us=sync_us, statement="end")
        commit = evidence.call(
            "exec", "end", end_us=over + 40, elapsed_us=sync_us + 60, cpu_us=60, wait_us=sync_us, self_us=sync_us + 60
        )
        evidence.adopt(commit, sync)
        awake = over + 30
        until = awake + 50 if waits else begun + 50
        lock = (
            evidence.wait(ROW, "lock", end_us=awake, elapsed_us=awake - begun, statement="upd", session=1)
            if waits
            else 0
        )
        update = evidence.call(
            "exec",
            "upd",
            end_us=until,
            elapsed_us=until - begun + 20,
            cpu_us=70,
            session=1,
            wait_us=awake - begun if waits else 0,
        )
        if lock:
            evidence.adopt(update, lock)
        t = over + 5_000
    return evidence


def written(folder: Path, evidence: Evidence, kind: str = "postgresql waits") -> str:
    run = evidence.write(folder)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"format": kind}))
    return str(run)


def compared(folder: Path, one: Evidence, two: Evidence) -> list[str]:
    runs = [written(folder / name, each) for name, each in (("good", one), ("bad", two))]
    with open_traces(runs[:1]) as base, open_traces(runs[1:]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=("good", "bad")))
    told = sum(reason["effect_ns"] for reason in model["reasons"])
    before, after = model["account"]["response_ns"]
    assert told == pytest.approx(after - before, rel=0.05), "the causes add up to the difference"
    return [reason["text"] for reason in model["reasons"]]


def test_the_time_of_a_wait_for_a_lock_is_told_by_what_its_holder_did(tmp_path: Path) -> None:
    with open_traces([written(tmp_path / "run", made(10, sync_us=8_000, waits=True, think_us=1_500))]) as traces:
        found = holders(traces)[ROW]
    assert found.count == 10
    assert found.is_known
    waited = found.time_ns / 10_000
    assert found.meanwhile[SYNC] == pytest.approx(10 * 8_000_000)
    assert found.meanwhile[THINK] == pytest.approx(10 * 1_900_000), "what of it lies within the wait"
    assert found.meanwhile[WORK] == pytest.approx(10 * (waited - 9_900) * 1000)
    assert sum(found.meanwhile.values()) == pytest.approx(found.time_ns)


def test_slow_syncs_are_the_cause_and_not_the_locks_behind_them(tmp_path: Path) -> None:
    said = compared(tmp_path, made(40, sync_us=300, waits=True), made(40, sync_us=8_000, waits=True))
    assert "an IO:WALSync takes 8.00 ms instead of 300 us (40 of them); meanwhile others waited for locks" in said[0]
    assert "others waited for locks of these sessions 320 ms instead of 12.0 ms" in said[0]
    assert not any(ROW in text for text in said[1:])


def test_locks_where_there_were_none_are_the_cause_and_it_is_told_what_their_holders_did(tmp_path: Path) -> None:
    said = compared(tmp_path, made(40, sync_us=3_000, waits=False), made(40, sync_us=3_100, waits=True))
    assert f"{ROW}: 40 waits" in said[0]
    assert "none in good; 8" in said[0]
    assert f"% of it while the holder was in {SYNC}" in said[0]


def test_nothing_is_said_of_holders_that_are_not_known(tmp_path: Path) -> None:
    evidence = made(10, sync_us=8_000, waits=False)
    for at in range(10):
        evidence.wait(ROW, "lock", end_us=900_000 + 9_000 * at, elapsed_us=4_000, session=1)
    with open_traces([written(tmp_path / "run", evidence)]) as traces:
        found = holders(traces)[ROW]
    assert not found.is_known
    assert found.shares() == {}
    assert found.as_dict()["meanwhile"] == []


def test_a_trace_of_another_kind_has_no_holders(tmp_path: Path) -> None:
    with open_traces([written(tmp_path / "run", made(3, sync_us=10, waits=True), kind="oracle 10046")]) as traces:
        assert holders(traces) == {}


def test_waits_for_the_log_stand_behind_whoever_writes_it(tmp_path: Path) -> None:
    evidence = made(10, sync_us=8_000, waits=False)
    for row in [row for row in evidence.rows["waits"] if row["event"] == SYNC]:
        over = (row["started_ns"] + row["elapsed_ns"] - evidence.rows["calls"][0]["started_ns"]) // 1000
        evidence.wait(WRITE, "latch", end_us=over, elapsed_us=4_000, session=1)
    with open_traces([written(tmp_path / "run", evidence)]) as traces:
        found = holders(traces)[WRITE]
    assert found.shares()[SYNC] == pytest.approx(1.0)


def test_a_question_about_part_of_the_waits_is_told_what_stood_behind_that_part(tmp_path: Path) -> None:
    """The first five commits take 8 ms to sync, the others none."""
    evidence = made(5, sync_us=8_000, waits=True)
    later = made(5, sync_us=1, waits=True, think_us=5_000)
    for table in ("calls", "waits"):
        for row in later.rows[table]:
            row["started_ns"] += 1_000_000_000
            for key in ("call", "wait"):
                if row.get(key) is not None:
                    row[key] += 1_000_000
        evidence.rows[table] += later.rows[table]
    since = evidence.rows["waits"][0]["started_ns"] + 500_000_000
    with open_traces([written(tmp_path / "run", evidence)]) as traces:
        whole = holders(traces)[ROW]
        restrict(traces, from_ns=since)
        part = holders(traces)[ROW]
    assert whole.shares()[SYNC] > 0.5
    assert part.count == 5
    assert part.shares()[THINK] > 0.9


def test_a_session_that_hardly_did_anything_is_no_block() -> None:
    counts = np.array([1_050.0, 1_049.0, 3.0, 28.0, 1_000.0])
    assert is_light(counts).tolist() == [False, False, True, True, False]
    assert is_light(np.array([5.0, 5.0])).tolist() == [False, False]
    assert is_light(np.zeros(0)).tolist() == []
