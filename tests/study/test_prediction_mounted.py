"""If a run had mounted a modelled device below the server's log, a calibrated machine uses the model of that device."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_made import Truth, live_run, machine_of, value

from dbdyno.model.machine import parse_machine
from dbdyno.model.postgres import simulate
from dbdyno.study.prediction.fit import Machine

TRUTH = Truth(sync_us=750.0, wal_bytes=60_000.0, mounted="gp3")
GP3_MB_PER_S = 131.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run `made`."""
    folder = tmp_path_factory.mktemp("runs")
    live_run(folder, TRUTH)
    return folder


def test_the_log_is_on_the_mounted_device(machine: Machine):
    made = parse_machine("model:made", machine.toml())
    assert [part["kind"] for part in made.parts] == ["volume"]
    assert 'redo = "mounted_log_volume"' in machine.toml()
    assert any("had mounted gp3" in note for note in machine.notes)
    # The measured times of a sync are still shown, and nothing of the device is left undetermined.
    assert any(row.key == "devices.log p50" for row in machine.device.parameters)
    assert not any("device" in name for name in machine.undetermined)


def test_what_a_sync_takes_beyond_the_mounted_device_is_fitted(machine: Machine):
    rows = [row for row in machine.parameters if row.key == "sync_served_us"]
    assert [row.source for row in rows] == ["fitted"]
    one = simulate(machine.toml(), sessions=1, replications=1, transactions=4_000)
    # The log-normal noise of the run's syncs has a mean of 1.02.
    assert one.sync_ns / 1e3 == pytest.approx(1.02 * TRUTH.sync_us, rel=0.04)
    assert value(machine, "sync_served_us") > 50.0


def test_many_sessions_reach_the_throughput_of_the_mounted_device(machine: Machine):
    """One session wrote 60 MB/s at most, so its times alone do not show the limit."""
    many = simulate(machine.toml(), sessions=32, settings={"postgres.cores": "64"}, replications=1, transactions=6_000)
    written = many.throughput_per_s * TRUTH.wal_bytes / 1e6
    assert written == pytest.approx(GP3_MB_PER_S, rel=0.1)


def test_a_device_of_a_file_is_measured(tmp_path: Path):
    """A device that is not in the catalogue has no model here; its measured times are used."""
    live_run(tmp_path, Truth(mounted="mine.toml"))
    machine = machine_of(tmp_path, "one")
    assert [part["kind"] for part in parse_machine("model:made", machine.toml()).parts] == ["empirical"]
