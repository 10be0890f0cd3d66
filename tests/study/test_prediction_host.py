"""A machine of a host without a database has its measured values and scaled defaults, and labels both."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from live_made import Truth, live_run, model

from dbdyno.base.errors import DeviceError, ModelError
from dbdyno.bench.host import speed as speed_module
from dbdyno.bench.host import syncs as syncs_module
from dbdyno.bench.host.queue_time import QueueTime, excess_waits
from dbdyno.bench.host.speed import measure_host
from dbdyno.bench.host.syncs import FLAGS, LogFile
from dbdyno.evidence.run import find_run
from dbdyno.model.machine import parse_machine
from dbdyno.pages.model import page as model_page
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction import sensitivity
from dbdyno.study.prediction.axes import axes_of, points_of
from dbdyno.study.prediction.compare import CalibratedMachine, predict
from dbdyno.study.prediction.fit import Machine
from dbdyno.study.prediction.host import calibrate_host
from dbdyno.study.prediction.reference import REFERENCE, SCALING_FACTOR
from dbdyno.study.prediction.sync_methods import method_settings, methods_of
from host_made import CPU_PER_KB_US, CPU_US, DELAY_US, DEVICE_US, PER_KB_US, flushes, host


@pytest.fixture(scope="module")
def machine() -> Machine:
    return calibrate_host(host(2.0, 3.0), scale=5)


def test_what_was_measured_is_in_the_machine(machine: Machine):
    by = {own.key: own for own in machine.parameters}
    assert by["cores"].value == 4
    assert by["flush_us"].value == pytest.approx(CPU_US)
    assert by["flush_us_per_kb"].value == pytest.approx(CPU_PER_KB_US)
    assert by["wake_us"].value == by["cold_us"].value == pytest.approx(8.0)
    assert by["others"].value == pytest.approx(0.1)
    at = dict(zip(by["delay"].value["probability"], by["delay"].value["us"], strict=True))
    assert at[0.51] == pytest.approx(DELAY_US * math.log(1 / 0.49), rel=0.15)


def test_each_sync_method_is_a_device_without_cpu_and_without_waits_for_a_busy_core(machine: Machine):
    rows = {own.key: own for own in machine.device.parameters}
    for method, us in DEVICE_US.items():
        name = "log" if method == "fdatasync" else f"log_{method}"
        assert rows[f"devices.{name} p50"].value == pytest.approx(us, rel=0.03), method
        assert rows[f"devices.{name} write_us_per_kb"].value == pytest.approx(PER_KB_US, rel=0.15), method


def test_costs_of_statements_are_defaults_scaled_by_the_probes_with_a_stated_interval(machine: Machine):
    texts = {own["text"].split(" ")[0]: own for own in machine.statements}
    assert texts["insert"]["user_us"] == pytest.approx(2 * REFERENCE.statement_times("insert into x")[0])
    assert texts["insert"]["system_us"] == pytest.approx(3 * REFERENCE.statement_times("insert into x")[1])
    assert texts["begin"]["wal_bytes"] == 0 < texts["update"]["wal_bytes"]
    factor = next(own for own in machine.parameters if own.key == "cpu_factor")
    assert (factor.low, factor.high) == (1 / SCALING_FACTOR, SCALING_FACTOR)


def test_each_parameter_says_if_it_was_measured_and_the_page_what_is_not_determined(machine: Machine):
    own = {parameter.key: parameter for parameter in machine.parameters}
    assert {parameter.source for parameter in own.values()} == {"measured", "default"}
    assert {own[key].source for key in ("statements", "client_us", "cpu_factor")} == {"default"}
    assert any("CPU of statements" in text for text in machine.undetermined)


def test_the_file_is_a_machine_that_every_command_takes(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sensitivity, "TRANSACTIONS", 500)
    assert model("check", str(file)).exit_code == 0
    for arguments in (
        ("analyse", str(file), "--sessions", "1"),
        ("sensitivity", str(file), "--trajectories", "2"),
    ):
        done = model(*arguments, "--format", "json")
        assert done.exit_code == 0, (arguments, done.exception)
    shown = json.loads(model("whatif", str(file), "--set", "sessions=1", "--format", "json").output)
    assert "without a database" in shown["sentences"][-1]
    one = shown["points"][0]
    # What is not known of the CPU of statements is in the band.
    assert one["high"] / one["low"] > 1.1


def test_levels_of_cores_and_devices_are_beside_their_busy_shares(file: Path, one_draw: None):
    arguments = ("whatif", str(file), "--set", "cores=2,4", "--set", "device=gp3", "--format", "json")
    page = model_page(json.loads(model(*arguments).output))
    rows = next(section for section in page.sections if section.title == "Combinations").tables[0].rows
    assert [(row.cells["cores"], row.cells["device"]) for row in rows] == [("2", "gp3"), ("4", "gp3")]
    assert all(0 < row.cells["cores_busy"] < 1 for row in rows)


def test_a_what_if_is_a_picture_with_the_model_s_own_words(file: Path, tmp_path: Path, one_draw: None):
    picture = tmp_path / "whatif.svg"
    done = model("whatif", str(file), "--set", "sessions=1,2", "-o", str(picture))
    assert done.exit_code == 0, done.exception
    text = picture.read_text()
    assert "according to the model" in text and "blocks" not in text


def test_a_what_if_sets_the_sync_method(file: Path, one_draw: None):
    arguments = ("whatif", str(file), "--set", "wal_sync_method=fdatasync,open_datasync,fsync", "--format", "json")
    points = {point["wal_sync_method"]: point for point in json.loads(model(*arguments).output)["points"]}
    gained = points["fdatasync"]["p50"] - points["open_datasync"]["p50"]
    assert gained == pytest.approx(100e3, rel=0.1)
    assert points["fsync"]["p50"] - points["fdatasync"]["p50"] == pytest.approx(500e3, rel=0.1)


def test_a_sync_method_that_is_not_in_the_machine_is_refused(file: Path):
    made = parse_machine("model:host", file.read_text())
    assert methods_of(made) == list(FLAGS)
    for axes, words in (
        (["wal_sync_method=fsync_writethrough"], "is not in this machine"),
        (["wal_sync_method=fsync", "device=gp3"], "exclude each other"),
    ):
        with pytest.raises(ModelError, match=words):
            points_of(made, axes_of(axes), 1)


def test_a_machine_of_a_run_says_that_it_knows_one_way_to_sync(tmp_path: Path):
    from calibrated import CALIBRATED

    settings, said = method_settings(parse_machine("model:run", CALIBRATED), "fsync")
    assert not settings and "--host" in said[0]


def test_an_arm_with_another_sync_method_is_predicted_by_the_device_of_that_method(tmp_path: Path, file: Path):
    run = live_run(tmp_path, Truth(), blocks=3, transactions=40)
    given, p50, notes = CalibratedMachine.from_machine(parse_machine("model:host", file.read_text())), {}, {}
    for method in ("fdatasync", "fsync", "fsync_writethrough"):
        run.manifest.arms[0]["changes"] = {"wal_sync_method": method}
        (arm,) = predict(run, measure(run), given, only=("one",))["arms"]
        p50[method] = next(row["model"] for row in arm["metrics"] if row["metric"] == "p50")
        notes[method] = " ".join(arm["notes"])
    assert p50["fsync"] - p50["fdatasync"] == pytest.approx(500e3, rel=0.1)
    assert "wal_sync_method = fsync_writethrough is not in this machine" in notes["fsync_writethrough"]
    assert "wal_sync_method" not in notes["fsync"]


def test_a_prediction_by_such_a_machine_says_what_it_rests_on(tmp_path: Path, file: Path):
    live_run(tmp_path, Truth(), blocks=3, transactions=40)
    assert find_run("made", tmp_path)
    shown = json.loads(model("predict", "made", "-m", str(file), "--runs", str(tmp_path), "--format", "json").output)
    assert any("without a database" in text for text in shown["sentences"])


def test_too_few_syncs_are_refused_and_those_of_other_methods_left_out():
    with pytest.raises(ModelError, match="too few"):
        calibrate_host(host(count=50), scale=1)
    made = host()
    made.syncs["fsync"] = flushes(900.0, random.Random(3), count=20)
    machine = calibrate_host(made, scale=1)
    assert "log_fsync" not in machine.toml()
    assert any("20 syncs by fsync are too few" in text for text in machine.notes)


def test_a_real_host_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(speed_module, "LEAST_NS", 10**8)
    monkeypatch.setattr(speed_module, "ROUNDS", 2)
    # Folders of tests may be in memory.
    monkeypatch.setattr(syncs_module, "file_system", lambda folder: None)
    found = measure_host(tmp_path, 10**8)
    assert found.cores >= 1
    assert all(0.1 < us < 1_000 for us in [*found.work_us, *found.message_us])
    assert all(len(own.kb) >= 2 and min(own.elapsed_us) > 0 for own in found.syncs.values())
    assert set(found.syncs) == set(FLAGS)
    assert not list(tmp_path.iterdir())
    if found.cores > 1:
        assert len(found.delays_us) == 2 * speed_module.TRIPS


def test_a_log_in_memory_and_a_folder_that_cannot_be_written_are_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(DeviceError, match=r"in memory|cannot be written"):
        LogFile(Path("/proc"))
    monkeypatch.setattr(syncs_module, "file_system", lambda folder: None)
    with pytest.raises(DeviceError, match="cannot be written"):
        LogFile(Path("/proc"))


def test_waits_for_a_core_count_beyond_what_its_start_takes(tmp_path: Path):
    assert excess_waits([5.0] * 10 + [4_005.0]) == [0.0] * 10 + [4_000.0]
    assert excess_waits([]) == []
    lacking = QueueTime(1, proc=tmp_path)
    assert lacking.ns() == 0
    lacking.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("calibrate",), "name a RUN or a FILE"),
        (("calibrate", "--host"), "--host needs --folder"),
        (("calibrate", "last", "--host", "--folder", "/"), "leave RUN or FILE out"),
        (("calibrate", "--host", "--folder", "/", "--arm", "s1"), "leave --arm out"),
        (("calibrate", "last", "--folder", "/"), "--folder works only with --host"),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], words: str):
    done = model(*arguments)
    assert done.exit_code == 2
    assert words in done.output
