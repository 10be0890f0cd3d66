"""A machine calibrated from an arm that reads or spills has the counts, CPU and device of its blocks."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from live_made import value
from reading_made import STATEMENT, Reading, reading_run

from calibrated import CALIBRATED
from dbdyno import _core
from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.cli.main import cli
from dbdyno.evidence.run import Run, find_run
from dbdyno.model.machine import parse_machine
from dbdyno.model.postgres import simulate
from dbdyno.model.swap import renamed_device, with_data_device, with_device
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction.axes import axes_of, points_of
from dbdyno.study.prediction.compare import CalibratedMachine, predict
from dbdyno.study.prediction.file_io import FileIo, file_io
from dbdyno.study.prediction.fit import Machine, calibrate
from dbdyno.study.prediction.memory import megabytes
from dbdyno.study.prediction.observation import observe, timed_waits
from dbdyno.study.prediction.relations import popularity
from dbdyno.study.prediction.whatif import whatif

TRUTH = Reading()
Made = Callable[..., tuple[Run, Machine]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a function that makes a run with these costs and the machine of one of its arms, each only once."""
    known: dict[tuple[Reading, str], tuple[Run, Machine]] = {}

    def make(truth: Reading = TRUTH, arm: str = "one") -> tuple[Run, Machine]:
        if (truth, arm) not in known:
            folder = tmp_path_factory.mktemp("runs")
            reading_run(folder, truth)
            run = find_run("made", folder)
            known[truth, arm] = run, calibrate(timed_waits(observe(run, measure(run), arm)))
        return known[truth, arm]

    return make


def keys(machine: Machine) -> list[str]:
    return [own.key for own in machine.parameters]


def arms_of(run: Run, machine: Machine, *only: str) -> dict[str, Any]:
    """Return the predictions of these arms."""
    given = CalibratedMachine.from_machine(parse_machine("model:made", machine.toml()))
    return {arm["arm"]: arm for arm in predict(run, measure(run), given, only=only)["arms"]}


def error(arm: JsonObject, metric: str) -> float:
    return next(float(row["error"]) for row in arm["metrics"] if row["metric"] == metric)


def test_reads_of_a_statement_are_counted_and_their_costs_are_found_again(made: Made):
    _, machine = made()
    reads = machine.statements[0]["reads"]
    assert reads["count"] == [0, 1]
    assert reads["share"][1] == pytest.approx(TRUTH.misses, abs=0.02)
    assert value(machine, "read_us") == pytest.approx(TRUTH.inside_us, rel=0.02)
    cpu = machine.statements[0]["user_us"] + machine.statements[0]["system_us"]
    assert cpu == pytest.approx(TRUTH.server_us, rel=0.05)
    median = next(own for own in machine.files.rows if own.key == "devices.data read p50")
    assert median.value == pytest.approx(TRUTH.read_us, rel=0.03)
    assert median.low < TRUTH.read_us < median.high * 1.03
    assert value(machine, "data_factor") == pytest.approx(1.0, abs=0.05)
    # Delays are those of round trips, and have no reads in them.
    delay = dict(zip(value(machine, "delay")["probability"], value(machine, "delay")["us"], strict=True))
    assert delay[0.99] < TRUTH.read_us / 4


def test_every_parameter_of_files_says_where_it_comes_from(made: Made):
    _, machine = made()
    for key in ("read_us", "shared_buffers_mb", "relations", "data_mb", "data_factor"):
        own = next(own for own in machine.parameters if own.key == key)
        assert own.source in ("measured", "fitted", "default"), key
        assert own.how, key
    assert any("reads per transaction were counted" in note for note in machine.notes)
    assert any("kernel's cache" in note for note in machine.notes)
    assert any("assumed not to wait for each other" in note for note in machine.notes)


def test_the_calibrated_arm_is_reproduced_and_larger_buffers_read_less(made: Made):
    run, machine = made()
    arms = arms_of(run, machine, "one", "larger")
    assert abs(error(arms["one"], "p50")) < 0.02
    assert abs(error(arms["one"], "p99")) < 0.06
    # Half of the table is in the buffers: the median is a read or none, so the mean is compared.
    assert abs(error(arms["larger"], "mean")) < 0.05
    assert arms["larger"]["notes"] == []


def test_sessions_are_told_apart_by_the_calls_that_contain_their_waits(made: Made):
    _, machine = made(arm="four")
    reads = machine.statements[0]["reads"]
    assert reads["share"][1] == pytest.approx(TRUTH.misses, abs=0.02)
    assert machine.statements[0]["text"] == STATEMENT


def test_without_the_sizes_of_tables_reads_are_held_constant(made: Made):
    run, machine = made(Reading(sizes=False))
    assert "shared_buffers" in machine.undetermined
    assert "relations" not in keys(machine)
    larger = arms_of(run, machine, "larger")["larger"]
    assert any("shared_buffers = 50MB" in note and "not predicted" in note for note in larger["notes"])
    assert error(larger, "mean") > 0.3
    with pytest.raises(ModelError, match="does not describe the pages"):
        points_of(parse_machine("model:made", machine.toml()), axes_of(["shared_buffers=1GB"]), 1)


def test_another_work_mem_is_named_as_not_predicted(made: Made):
    run, machine = made()
    sorts = arms_of(run, machine, "sorts")["sorts"]
    assert any("work_mem = 64kB differs" in note and "calibrate on this arm" in note for note in sorts["notes"])
    run, machine = made(Reading(misses=0.0, spilled=3), "sorts")
    assert arms_of(run, machine, "sorts")["sorts"]["notes"] == []


def test_a_spill_is_counted_and_has_a_device_of_its_own(made: Made):
    _, machine = made(Reading(misses=0.0, spilled=3), "sorts")
    own = machine.statements[0]
    assert own["temp_writes"] == own["temp_reads"] == {"count": [3], "share": [1.0]}
    assert "reads" not in own
    # The CPU inside all waits of this run is that of the two kinds of blocks.
    assert value(machine, "temp_us") == pytest.approx(TRUTH.inside_us, rel=0.02)
    assert 'temp = "temp"' in machine.toml()
    rows = {row.key: row.value for row in machine.files.rows}
    assert rows["devices.temp read p50"] == pytest.approx(TRUTH.read_us, rel=0.05)
    one = simulate(machine.toml(), sessions=1, replications=1, transactions=500)
    assert one.mean_ns / 1e3 == pytest.approx(75 + 6 * (TRUTH.read_us * 1.02 + TRUTH.inside_us), rel=0.03)


def test_what_the_kernels_cache_answers_is_no_time_of_the_device(made: Made):
    run, machine = made(Reading(cached=0.7))
    assert value(machine, "cached_ratio") == pytest.approx(0.7, abs=0.03)
    median = next(own for own in machine.files.rows if own.key == "devices.data read p50")
    assert median.value == pytest.approx(TRUTH.read_us, rel=0.05)
    assert abs(error(arms_of(run, machine, "one")["one"], "mean")) < 0.05
    _, machine = made(Reading(cached=1.0))
    assert value(machine, "cached_ratio") == 1.0
    assert "data device" in machine.undetermined
    assert simulate(machine.toml(), sessions=1, replications=1, transactions=500).read_ns == 0.0


def test_a_device_that_the_run_had_mounted_keeps_its_queue(made: Made):
    _, machine = made(Reading(mounted=True))
    text = machine.toml()
    assert "[devices.mounted_volume]" in text
    assert "iops = 6000" in text
    assert not any("assumed not to wait" in note for note in machine.notes)
    rate = simulate(text, sessions=64, replications=1, transactions=6_000).throughput_per_s
    assert rate == pytest.approx(6_000 / TRUTH.misses, rel=0.06)
    # What a read took beyond that device is fitted.
    one = simulate(text, sessions=1, replications=1, transactions=3_000)
    assert one.read_ns / 1e3 == pytest.approx(TRUTH.read_us * 1.02, rel=0.04)


def test_a_measured_device_serves_all_sessions_at_once(made: Made):
    _, machine = made()
    load = {"settings": {"postgres.cores": "64"}, "replications": 1, "transactions": 6_000}
    one, many = (simulate(machine.toml(), sessions=n, **load) for n in (1, 32))
    assert many.throughput_per_s == pytest.approx(32 * one.throughput_per_s, rel=0.05)


def test_a_what_if_swaps_the_data_device_and_changes_the_buffers(made: Made, one_draw: None):
    _, machine = made()
    given = CalibratedMachine.from_machine(parse_machine("model:made", machine.toml()))
    page = whatif(given, axes_of(["data_device=measured,gp3,disk-15000", "shared_buffers=10MB,50MB", "sessions=16"]))
    rates = {(own["data_device"], own["shared_buffers"]): own["throughput"] for own in page["points"]}
    assert rates["gp3", "10MB"] == pytest.approx(3_000 / TRUTH.misses, rel=0.06)
    assert rates["gp3", "50MB"] == pytest.approx(3_000 / 0.5, rel=0.08)
    assert rates["measured", "10MB"] > 2 * rates["gp3", "10MB"] > 4 * rates["disk-15000", "10MB"]
    busy = next(own for own in page["points"] if own["data_device"] == "disk-15000")
    assert busy["binds"] == "data device"
    assert any("kernel's own cache" in text for text in page["sentences"])


@pytest.mark.parametrize("level", ["0MB", "some", "-1MB"])
def test_buffers_of_no_size_are_refused(made: Made, level: str):
    _, machine = made()
    with pytest.raises(ModelError, match="not a size"):
        points_of(parse_machine("model:made", machine.toml()), axes_of([f"shared_buffers={level}"]), 1)


def test_a_machine_without_files_stays_as_it_was(made: Made):
    machine = parse_machine("model:made", CALIBRATED)
    settings = {"postgres.shared_buffers_mb": "100"}
    same = [simulate(CALIBRATED, sessions=4, settings=own).latencies_ns for own in ({}, settings)]
    assert np.array_equal(*same)
    assert {row["path"] for row in machine.parameters} >= {"postgres.read_us", "postgres.shared_buffers_mb"}
    # Its text has no new keys.
    assert "reads" not in json.dumps([row["value"] for row in machine.parameters if row["given"]])


@pytest.mark.parametrize("name", [name for name, _ in _core.device_texts()])
def test_every_device_can_hold_the_data_beside_the_log(name: str):
    machine = with_data_device(CALIBRATED, name)
    parse_machine("model:made", machine)
    top, text = renamed_device(name, "other")
    assert f'data = "{top.replace("other_", "swapped_")}"' in machine
    assert 'redo = "log"' in machine
    assert f"[devices.{top.partition('.')[0]}]" in text
    parse_machine("model:made", with_data_device(with_device(CALIBRATED, "gp3"), name))


def test_an_unknown_device_or_parameter_is_refused():
    with pytest.raises(ModelError, match="no device named"):
        with_data_device(CALIBRATED, "drum")
    with pytest.raises(ModelError, match="not one of the device's parameters"):
        renamed_device("stripe-15000", "other", {"speed": "1"})


def test_sizes_of_postgresql_are_read():
    assert [megabytes(text) for text in ("8MB", "64kB", "1 GB", "0.5TB")] == [8.0, 0.0625, 1024.0, 2**19]
    assert (megabytes("1024", "8kb"), megabytes("4096", "kb")) == (8.0, 4.0)
    assert math.isnan(megabytes("much"))


def test_equally_popular_pages_are_one_group_and_popular_ones_are_told_apart():
    random_ = random.Random(5)
    even = np.sort(np.array([random_.randrange(5_000) for _ in range(20_000)]))
    assert popularity(even, 5_000) == [(5_000, 1.0)]
    weights = [(page + 1) ** -1.05 for page in range(5_000)]
    drawn = np.sort(np.array(random_.choices(range(5_000), weights, k=20_000)))
    groups = popularity(drawn, 5_000)
    assert sum(pages for pages, _ in groups) == 5_000
    assert sum(share for _, share in groups) == pytest.approx(1.0)
    relation = {"name": "t", "pages": [own[0] for own in groups], "share": [own[1] for own in groups]}
    exact = {"name": "t", "pages": [1] * 5_000, "share": [own / sum(weights) for own in weights]}
    for buffers_mb in (1.0, 4.0, 16.0):
        found, expected = (_core.model_misses([own], [1.0], buffers_mb)[0] for own in (relation, exact))
        assert found == pytest.approx(expected, abs=0.02)


def test_more_than_64_different_counts_are_put_together_and_keep_their_mean():
    random_ = random.Random(1)
    counts = np.array([random_.randrange(100, 400) for _ in range(3_000)])
    call = np.repeat(np.arange(3_000), counts)
    times = np.ones(len(call), dtype=np.int64)
    events = np.full(len(call), "IO:BufFileRead", dtype=object)
    found = FileIo(call, events, times, times).counts("IO:BufFileRead", np.arange(3_000))
    assert found is not None
    assert len(found["count"]) == 64
    mean = sum(n * share for n, share in zip(found["count"], found["share"], strict=True))
    assert mean == pytest.approx(counts.mean(), rel=0.005)


def test_a_wait_outside_of_all_calls_belongs_to_none():
    calls = {"session": np.array([0]), "kind": np.array(["exec"], dtype=object), "started_ns": np.array([1_000_000])}
    calls |= {"elapsed_ns": np.array([500_000]), "statement": np.array(["s"], dtype=object)}
    waits = {"session": np.array([7, 7, 7]), "started_ns": np.array([500_000, 1_100_000, 1_400_000])}
    waits |= {"elapsed_ns": np.array([100_000, 100_000, 300_000])}
    waits |= {"event": np.array(["IO:DataFileRead"] * 3, dtype=object)}
    assert file_io(calls, waits).call.tolist() == [0]


def test_the_cost_of_a_what_if_is_shown_on_a_terminal(tmp_path: Path):
    machine, prices = tmp_path / "mine.toml", tmp_path / "prices.toml"
    machine.write_text(CALIBRATED)
    prices.write_text("server = 0.1\n[devices]\ngp3 = 0.01\n")
    options = ["--set", "device=gp3", "--set", "sessions=1,4", "--cost", str(prices)]
    shown = CliRunner().invoke(cli, ["model", "whatif", str(machine), *options])
    assert shown.exit_code == 0
    assert "unit of money" in " ".join(shown.output.split())
