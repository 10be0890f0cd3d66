"""Clocks of hosts, shares of a load among hosts, and calls of several hosts in one part."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbdyno.base.core_types import LoadSpec
from dbdyno.base.errors import PlanError, TargetError
from dbdyno.hosts import clock as clocks
from dbdyno.hosts.calls import HostPart, write_calls
from dbdyno.hosts.clock import ClockComparison, ClockFit, ClockServer, SteadyClock, compare_clock, fit_clock
from dbdyno.hosts.shares import first_session, share_of
from dbdyno.stats.gates_hosts import host_start_gate, hosts_alike
from fresh_dice import fresh_dice

SECOND = 1_000_000_000


def test_an_offset_is_found_within_its_error_and_strangers_get_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = SteadyClock()
    with ClockServer(lambda: ours.now_ns() + 500_000_000, "127.0.0.1") as server:
        found = compare_clock(ours.now_ns, "127.0.0.1", server.port, server.key, rounds=20)
        assert abs(found.offset_ns - 500_000_000) <= found.error_ns < 50_000_000
        monkeypatch.setattr(clocks, "TIMEOUT_S", 0.01)
        with pytest.raises(TargetError, match="the clock of the worker does not answer"):
            compare_clock(ours.now_ns, "127.0.0.1", server.port, b"x" * clocks.KEY_BYTES)


def test_offset_and_drift_are_within_the_error_for_delays_that_differ_by_direction() -> None:
    dice = fresh_dice()
    for _ in range(50):
        offset, drift = dice.uniform(-SECOND, SECOND), dice.uniform(-100e-6, 100e-6)
        found = []
        for step in range(40):
            sent = step * SECOND // 10
            there, back = (1_000_000 + int(dice.expovariate(1 / 400_000)) for _ in range(2))
            host = sent + there + round(offset + drift * (sent + there))
            found.append(ClockComparison(host, host - (sent + sent + there + back) // 2, (there + back) // 2))
        line = fit_clock(found)
        for ours in (0, 2 * SECOND, 4 * SECOND):
            host = ours + round(offset + drift * ours)
            assert abs(host - line.offset_at(host) - ours) <= line.error_ns
        assert abs(line.drift - drift) < 400e-6


def test_a_clock_that_jumps_within_a_block_has_an_error_of_the_jump() -> None:
    steady = [ClockComparison(step * SECOND, 0, 1_000) for step in range(5)]
    jumped = [ClockComparison(step * SECOND, 80_000_000, 1_000) for step in range(5, 10)]
    assert fit_clock(steady).error_ns == 1_000
    assert fit_clock(steady + jumped).error_ns > 20_000_000


SPEC: LoadSpec = {
    "seed": 5,
    "arms": [{"name": "a", "sessions": 11, "rate_per_s": 110.0}, {"name": "b", "sessions": 4, "rate_per_s": None}],  # type: ignore[typeddict-item]
}


def test_shares_add_up_and_sessions_are_numbered_through() -> None:
    shares = [share_of(SPEC, 4, number) for number in range(4)]
    assert [share["arms"][0]["sessions"] for share in shares] == [3, 3, 3, 2]
    assert [first_session(11, 4, number) for number in range(4)] == [0, 3, 6, 9]
    assert sum(share["arms"][0]["rate_per_s"] or 0 for share in shares) == pytest.approx(110)
    assert len({share["seed"] for share in shares}) == 4
    assert SPEC["arms"][0]["sessions"] == 11
    with pytest.raises(PlanError, match="4 sessions cannot be shared by 5 hosts"):
        share_of(SPEC, 5, 0)


def part_of(host: str, started: list[int], offset: int, first: int) -> HostPart:
    words = pa.DictionaryArray.from_arrays
    count = len(started)
    table = pa.table(
        {
            "arm": words(pa.array([0] * count, pa.uint16()), pa.array(["a"])),
            "block": pa.array([0] * count, pa.uint32()),
            "slice": pa.array([0] * count, pa.uint32()),
            "session": pa.array([0] * count, pa.uint16()),
            "kind": words(pa.array([0] * count, pa.uint8()), pa.array(["transaction"])),
            "intended_ns": pa.array([None, *(at + offset - 7 for at in started[1:])], pa.int64()),
            "started_ns": pa.array([at + offset for at in started], pa.int64()),
            "elapsed_ns": pa.array([10] * count, pa.int64()),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    return HostPart(host, file.getvalue(), ClockFit(0, float(offset), 0.0, 0), {"a": first})


def test_calls_get_one_clock_and_what_began_too_early_does_not_count(tmp_path: Path) -> None:
    base = time.time_ns()
    parts = [part_of("x", [base, base + 100], 0, 0), part_of("y", [base + 50, base + 60], 400_000_001, 3)]
    rows, beyond = write_calls(parts, {0: base + 50}, tmp_path / "calls" / "b000000.parquet")
    assert (rows, beyond) == (4, {("a", 1)})
    found = pq.read_table(tmp_path / "calls" / "b000000.parquet").to_pylist()
    assert [(row["host"], row["session"], row["started_ns"] - base, row["slice"]) for row in found] == [
        ("x", 0, 0, 1),
        ("x", 0, 100, 0),
        ("y", 3, 50, 0),
        ("y", 3, 60, 0),
    ]
    assert [row["intended_ns"] and row["intended_ns"] - base for row in found] == [None, 93, None, 53]
    assert [(part.calls, part.cut, part.mean_ns) for part in parts] == [(2, 1, {"a": 10.0}), (2, 0, {"a": 10.0})]


def test_a_host_that_is_answered_later_is_named() -> None:
    alike = [{"x": {"a": 100.0}, "y": {"a": 104.0}, "z": {"a": 97.0}} for _ in range(5)]
    assert hosts_alike(alike).ok
    once = [*alike, {"x": {"a": 100.0}, "y": {"a": 100.0}, "z": {"a": 900.0}}]
    assert hosts_alike(once).ok
    gate = hosts_alike([{"x": {"a": 100.0, "b": 10.0}, "y": {"a": 100.0, "b": 10.0}, "z": {"a": 140.0, "b": 14.0}}] * 5)
    assert not gate.ok
    assert "host z gets its answers 40.0 % later" in gate.text
    assert host_start_gate(1, 100).ok
    assert not host_start_gate(20, 100).ok
