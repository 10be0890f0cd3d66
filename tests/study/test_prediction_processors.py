"""Processors in a calibrated machine, and machines from an arm whose waits were only sampled."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from live_made import Truth, live_run

from dbdyno.evidence.run import find_run
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction.commits import SERVED_BY_MOUNT_US, SERVED_US, SYNC_REQUESTS, served_parameters
from dbdyno.study.prediction.costs import CLIENT_COLD_US, CLIENT_LEAST, CLIENT_SHARE, _client_and_wake
from dbdyno.study.prediction.fit import calibrate
from dbdyno.study.prediction.match import CLOSE, HALT_US, Devices, _halt, match
from dbdyno.study.prediction.modes import Modes
from dbdyno.study.prediction.observation import Observation, observe, timed_waits
from dbdyno.study.prediction.parameter import MEASURED, Parameter
from dbdyno.study.prediction.server import _log_writer, processor_parameters, turn_ms_of

TRUTH = Truth(fidelity="read")


@pytest.fixture(scope="module")
def observation(tmp_path_factory: pytest.TempPathFactory) -> Observation:
    """Return the observation of the single-session arm of a run whose waits were sampled."""
    folder = tmp_path_factory.mktemp("runs")
    live_run(folder, TRUTH)
    run = find_run("made", folder)
    return timed_waits(observe(run, measure(run), "one"))


def test_an_arm_whose_waits_were_read_has_its_device_from_its_commits(observation: Observation) -> None:
    machine = calibrate(observation)
    rows = {row.key: row.value for row in machine.device.parameters}
    assert rows["devices.log p50"] == pytest.approx(TRUTH.sync_us, rel=0.05)
    assert "commits beyond" in machine.device.toml
    flush = next(row for row in machine.parameters if row.key == "flush_us")
    assert 0 < flush.value < 2 * TRUTH.flush_us
    assert machine.device.sync_us == pytest.approx(TRUTH.sync_us * math.exp(0.02), rel=0.05)


def test_measured_values_of_processors_stay_within_their_limits() -> None:
    found = {row.key: row for row in processor_parameters({"busy_ratio": [0.97, 0.99, 0.98], "other": [3.0]})}
    assert set(found) == {"sibling_factor"}
    assert (found["sibling_factor"].value, found["sibling_factor"].low) == (1.0, 1.0)
    [slow] = processor_parameters({"busy_ratio": [1.4, 1.5, 1.6]})
    assert slow.value == pytest.approx(1.5) and slow.low < 1.5 < slow.high and slow.source == MEASURED


def test_where_a_process_wakes_up_is_traced_and_not_what_other_threads_did(observation: Observation) -> None:
    assert not processor_parameters({"pulls": [0.4, 0.3], "searches_late": [0.2, 0.1]})
    machine = calibrate(observation)
    keys = {row.key: row for row in machine.scheduler}
    assert {"pulls", "searches_late"} & set(keys) in (set(), {"pulls", "searches_late"})


@pytest.mark.parametrize("halt_us", [40.0, 250.0, 2_000.0])
def test_the_time_until_a_processor_is_halted_is_the_one_with_the_clients_cpu_time(halt_us: float) -> None:
    def client(us: float) -> Any:
        """Return a result in which the client's CPU time is proportional to the logarithm of the time."""
        return SimpleNamespace(client_cpu_ns=10_000.0 * math.log(us))

    found_us, outcome = _halt(client, client(halt_us).client_cpu_ns)
    assert HALT_US[0] < found_us < HALT_US[1]
    assert outcome.client_cpu_ns == pytest.approx(client(halt_us).client_cpu_ns, rel=2 * CLOSE)


def test_known_delays_need_no_factor_and_the_time_until_the_halt_is_fitted(
    observation: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []

    def simulate(machine: str, *, settings: dict[str, str], **_: Any) -> Any:
        """Return a result in which the client's CPU time grows with the time until a processor is halted."""
        halt_us = settings.get("postgres.scheduler.halt_us")
        asked.append((settings["postgres.delay_factor"], halt_us))
        spent_ns = 10_000.0 * math.log(float(halt_us or 500.0))
        delay = float(settings["postgres.delay_factor"])
        return SimpleNamespace(
            client_cpu_ns=spent_ns, quantile_ns=lambda q: 1e6 * (1 + delay), sync_ns=0.0, read_ns=0.0
        )

    monkeypatch.setattr("dbdyno.study.prediction.match.simulate", simulate)
    done = [
        {**report, "load_cpu_ns": report["transactions"] * 10_000 * math.log(250.0)} for report in observation.reports
    ]
    own = replace(observation, reports=done)
    found = match("", own, Devices(0.0, 100.0), delays_known=True, on_progress=lambda words: None)
    assert (found.delay, found.device) == (1.0, 1.0)
    assert found.halt_us == pytest.approx(250.0, rel=0.05)
    assert {delay for delay, _ in asked[:-1]} == {"1.0"}, "only the last run is without delays, to see their effect"
    free = match("", own, Devices(0.0, 100.0), on_progress=lambda words: None)
    assert free.halt_us == 0.0


def test_a_machine_has_the_turn_of_its_run(observation: Observation) -> None:
    rows = {row.key: row.value for row in calibrate(observation).parameters}
    assert rows["turn_ms"] == turn_ms_of(observation.run) == 1_000.0


@pytest.mark.parametrize(
    ("slice_ns", "turn_ns", "turn_ms"), [(250_000_000, 10**9, 250.0), (None, 10**9, 1_000.0), (None, None, 0.0)]
)
def test_a_turn_is_a_slice_or_the_whole_turn_of_an_arm(
    slice_ns: int | None, turn_ns: int | None, turn_ms: float
) -> None:
    run: Any = SimpleNamespace(manifest=SimpleNamespace(slice_ns=slice_ns, turn_ns=turn_ns))
    assert turn_ms_of(run) == turn_ms


def client_and_wake(modes: list[Modes | None] | None, client_us: float, sessions: int = 1) -> tuple[float, float]:
    """Return the client's CPU time per round trip and the cost to wake an idle core, from an arm."""
    block = SimpleNamespace(canaries={"wake_ns": 9_000.0})
    own: Any = SimpleNamespace(
        steps=SimpleNamespace(per_transaction=[1.0] * len(modes or [None])),
        sessions=sessions,
        measures=SimpleNamespace(blocks=[block, block]),
    )
    measured = Parameter("client_us", client_us, MEASURED, "", client_us, client_us, "us")
    client, wake = _client_and_wake(own, modes, measured)
    return client.value, wake.value


def test_what_a_client_uses_beyond_a_round_trip_on_one_core_starts_idle_cores() -> None:
    modes: list[Modes | None] = [Modes(12.0, 40.0, 0.5), Modes(30.0, 60.0, 0.5)]
    client_us, wake_us = client_and_wake(modes, 17.0)
    assert client_us == pytest.approx(CLIENT_SHARE * 12.0)
    assert client_us + 0.5 * (wake_us + CLIENT_COLD_US) == pytest.approx(17.0)


def test_without_modes_the_start_of_a_core_is_the_measured_one() -> None:
    assert client_and_wake(None, 17.0) == (8.0, 9.0)
    assert client_and_wake(None, 10.0) == (pytest.approx(CLIENT_LEAST * 10.0), 9.0), "something is left for the client"
    assert client_and_wake(None, 17.0, sessions=4) == (17.0, 9.0), "with several sessions most cores are busy"


def server_of(settings: dict[str, str], **facts: Any) -> Any:
    """Return what an observation tells of its server."""
    manifest = SimpleNamespace(arms=[{"target": "here"}], targets={"here": facts})
    return SimpleNamespace(settings=settings, number=0, run=SimpleNamespace(manifest=manifest))


@pytest.mark.parametrize(
    ("settings", "version", "buffers_kb", "wake_kb"),
    [
        ({}, 150_018, 4_096.0, 8),
        ({"shared_buffers": "256MB"}, 160_000, 8_192.0, 8),
        ({"shared_buffers": "64GB"}, 170_000, 16_384.0, 1_024.0),
        ({"wal_buffers": "512kB", "wal_writer_flush_after": "128"}, 170_000, 512.0, 1_024.0),
        ({"wal_buffers": "-1", "wal_writer_flush_after": "2MB"}, 180_000, 4_096.0, 2_048.0),
    ],
)
def test_the_log_writer_and_its_buffers_follow_settings_and_version(
    settings: dict[str, str], version: int, buffers_kb: float, wake_kb: float
) -> None:
    rows = {row.key: row.value for row in _log_writer(server_of(settings), {"version_num": version})}
    assert (rows["wal_buffers_kb"], rows["wal_writer_wake_kb"]) == (buffers_kb, wake_kb)


@pytest.mark.parametrize(("file_system", "us"), [("ext4", SERVED_US), ("fuse", SERVED_BY_MOUNT_US), (None, SERVED_US)])
def test_a_mount_takes_more_cpu_to_serve_a_sync_than_a_disk(file_system: str | None, us: float) -> None:
    requests, served = served_parameters(server_of({}, data_file_system=file_system))
    assert (requests.value, served.value) == (SYNC_REQUESTS, us)
