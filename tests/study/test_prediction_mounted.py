"""If a run had mounted a modelled device below the server's log, a calibrated machine uses the model of that device."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from live_made import Truth, live_run, machine_of, value

from dbdyno.evidence.run import find_run
from dbdyno.model.machine import Machine as ModelMachine
from dbdyno.model.machine import parse_machine
from dbdyno.model.postgres import simulate
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction.compare import CalibratedMachine, predict
from dbdyno.study.prediction.fit import Machine
from dbdyno.study.prediction.volumes import on_devices_of

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


def arm_on(*volumes: dict[str, Any], calibrated: bool = False) -> Any:
    """Return a run whose arm `one` is on gp3 and whose arm `other` is on these volumes."""
    arms = [{"name": "one", "target": "a"}, {"name": "other", "target": "a" if calibrated else "b"}]
    kept = [volume("a", "data and log", "gp3"), *volumes]
    return SimpleNamespace(id="made", manifest=SimpleNamespace(arms=arms, volumes=kept))


def volume(target: str, carries: str, device: str, **settings: str) -> dict[str, Any]:
    return {"target": target, "carries": carries, "device": device, "settings": settings, "direct_io": False}


@pytest.fixture(scope="module")
def calibrated(machine: Machine) -> ModelMachine:
    return replace(parse_machine("model:made", machine.toml()), title="calibrated from one of made")


def storage(toml: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(toml)["storage"]
    return found


def test_an_arm_on_the_device_of_the_calibrated_arm_needs_no_other(calibrated: ModelMachine):
    assert on_devices_of(calibrated, arm_on(calibrated=True), 1) == (calibrated.toml, True)


def test_an_arm_on_another_device_of_the_catalogue_is_predicted_on_that(calibrated: ModelMachine):
    toml, known = on_devices_of(calibrated, arm_on(volume("b", "data and log", "gp3", iops="6000")), 1)
    assert known and "iops = 6000" in toml and "mounted_log" not in toml
    one = simulate(toml, sessions=1, replications=1, transactions=200)
    assert one.device_ns == pytest.approx(561_000, rel=0.1)


def test_the_log_alone_is_moved(calibrated: ModelMachine):
    before = storage(calibrated.toml)
    toml, known = on_devices_of(calibrated, arm_on(volume("b", "log", "io2"), volume("b", "data", "gp3")), 1)
    assert known
    assert storage(toml)["redo"].startswith("swapped_log_")
    assert storage(toml)["data"] == before["data"]
    assert parse_machine("model:made", toml).parts


@pytest.mark.parametrize("volumes", [[], [volume("b", "data and log", "mine.toml")]])
def test_an_arm_on_a_device_without_a_model_is_not_predicted_on_it(
    calibrated: ModelMachine, volumes: list[dict[str, Any]]
):
    assert on_devices_of(calibrated, arm_on(*volumes), 1) == (calibrated.toml, False)


def test_a_run_with_an_arm_on_another_device_is_predicted_arm_by_arm(tmp_path: Path):
    run = live_run(tmp_path, Truth(mounted="gp3"))
    manifest = json.loads((run.path / "manifest.json").read_text())
    manifest["arms"][1] |= {"target": "host=there", "changes": {"device": "data and log on nvme-2024"}}
    manifest["targets"]["host=there"] = manifest["targets"]["host=here"]
    manifest["volumes"].append({**manifest["volumes"][0], "target": "host=there", "device": "nvme-2024"})
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    found = find_run("made", tmp_path)
    given = CalibratedMachine.from_machine(parse_machine("model:made", machine_of(tmp_path, "one").toml()))
    one, eight, _ = predict(found, measure(found), given)["arms"]
    assert eight["notes"] == one["notes"] == []
    p50 = {arm["arm"]: next(row["model"] for row in arm["metrics"] if row["metric"] == "p50") for arm in (one, eight)}
    assert p50["eight"] < p50["one"] / 1.5
