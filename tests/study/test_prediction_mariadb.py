"""A machine calibrated from commits on MariaDB has the costs of its server, and predicts the effect of settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from live_made import Truth as PostgresTruth
from live_made import live_run, machine_of, model
from mariadb_made import Truth, mariadb_run

from dbdyno.base.errors import ModelError
from dbdyno.evidence.run import find_run
from dbdyno.model.machine import parse_machine
from dbdyno.model.postgres import simulate
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction.compare import CalibratedMachine, predict
from dbdyno.study.prediction.fit import Machine
from dbdyno.study.prediction.mariadb import FLUSH_US, WRITE_US, as_parameters, payload_bytes
from dbdyno.study.prediction.observation import engine_of

TRUTH = Truth(flush_us=FLUSH_US, write_us=WRITE_US)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run `made`."""
    folder = tmp_path_factory.mktemp("runs")
    mariadb_run(folder, TRUTH)
    return folder


def value(machine: Machine, key: str) -> Any:
    return next(own.value for own in [*machine.parameters, *machine.device.parameters] if own.key == key)


def test_costs_of_the_server_are_found_again(machine: Machine):
    assert value(machine, "client_us") == pytest.approx(TRUTH.client_us, rel=0.01)
    costs = [own["user_us"] + own["system_us"] for own in machine.statements]
    assert costs == pytest.approx([TRUTH.server_us / 3] * 5, rel=0.1)
    assert value(machine, "flush_us") == pytest.approx(TRUTH.flush_us, rel=0.1)
    assert (value(machine, "wakes_all"), value(machine, "page_bytes")) == (False, 512)


def test_the_device_is_what_a_commit_takes_beyond_a_round_trip_and_what_a_kb_adds(machine: Machine):
    assert machine.device.parameters[0].value == pytest.approx(TRUTH.sync_us, rel=0.06)
    per_kb = next(own for own in machine.device.parameters if own.key.endswith("write_us_per_kb"))
    assert per_kb.low < TRUTH.sync_us_per_kb < per_kb.high
    assert per_kb.value == pytest.approx(TRUTH.sync_us_per_kb, rel=0.3)


def test_a_statement_writes_its_text_and_a_part_of_the_rest(machine: Machine):
    log = {own["text"]: own["wal_bytes"] for own in machine.statements}
    assert log["begin"] == log["commit"] == 0
    large = next(bytes_ for text, bytes_ in log.items() if "8000" in text)
    assert large == pytest.approx(8_000 + TRUTH.wal_bytes, rel=0.02)
    assert payload_bytes("insert into t values (repeat('x', 20), repeat('y',5))") == 25
    assert payload_bytes("insert into t values (repeat(:text, 20))") == 0


def test_settings_of_commits_are_parameters_of_the_model():
    given = {"innodb_flush_log_at_trx_commit": "2", "log_bin": "changes", "sync_binlog": "10", "server": "10.11"}
    expected = {"synchronous_commit": True, "commit_syncs": False, "flush_us": WRITE_US}
    expected |= {"binlog": True, "binlog_sync_every": 10}
    assert as_parameters(given) == (expected, [])
    assert as_parameters({"innodb_flush_method": "O_DIRECT"}) == ({}, [])
    assert as_parameters({"innodb_flush_log_at_trx_commit": "0"})[0] == {
        "synchronous_commit": False,
        "commit_syncs": False,
    }
    for name in ("innodb_flush_method", "innodb_doublewrite"):
        _, notes = as_parameters({name: "O_DSYNC"})
        assert notes == [f"{name} is not in the model: its effect is not predicted."]


def test_settings_are_predicted_from_an_arm_that_syncs(runs: Path, machine: Machine, tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text(machine.toml())
    shown = model("predict", "made", "--machine", str(file), "--runs", str(runs), "--format", "json")
    assert shown.exit_code == 0, shown.exception
    arms = {arm["arm"]: arm for arm in json.loads(shown.output)["arms"]}
    errors = {name: {row["metric"]: row["error"] for row in arm["metrics"]} for name, arm in arms.items()}
    assert arms["one"]["calibrated"]
    for name in ("one", "written", "off"):
        assert abs(errors[name]["p50"]) < 0.08 and abs(errors[name]["throughput"]) < 0.08, name
    assert arms["dsync"]["notes"] == ["innodb_flush_method is not in the model: its effect is not predicted."]
    # Two syncs: the made run's arm has one.
    assert errors["binary"]["p50"] > 0.5


def test_what_cannot_be_calibrated_is_refused(runs: Path):
    with pytest.raises(ModelError, match="calibrated on one session"):
        machine_of(runs, "eight")
    with pytest.raises(ModelError, match="without a binary log"):
        machine_of(runs, "binary")


def test_the_device_of_two_logs_is_as_busy_as_its_flushes_make_it(machine: Machine):
    found = simulate(machine.toml(), sessions=1, replications=1, transactions=1_000)
    assert found.device == pytest.approx(found.throughput_per_s * found.device_ns / 1e9, rel=0.02)


def test_an_arm_that_waits_for_no_sync_has_the_device_of_the_probe(runs: Path):
    found = machine_of(runs, "off")
    assert "device" in found.undetermined
    assert found.device.parameters[0].value == pytest.approx(TRUTH.sync_us)


def test_the_command_calibrates_and_a_machine_predicts_only_its_engine(runs: Path, tmp_path: Path):
    done = model("calibrate", "made", "--arm", "one", "--runs", str(runs), "-o", str(tmp_path / "m.toml"))
    assert done.exit_code == 0, done.exception
    made = parse_machine("model:m", (tmp_path / "m.toml").read_text())
    given = CalibratedMachine.from_machine(made)
    assert given.engine == "mariadb"
    live_run(tmp_path, PostgresTruth())
    other = find_run("made", tmp_path)
    assert (engine_of(other), engine_of(find_run("made", runs))) == ("postgresql", "mariadb")
    with pytest.raises(ModelError, match="is not a run on MariaDB"):
        predict(other, measure(other), given)
