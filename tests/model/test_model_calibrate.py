"""`dbdyno model calibrate`: from measured latencies to a machine's device."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from model_made import model_run

from dbdyno.base.errors import ModelError
from dbdyno.cli.main import cli
from dbdyno.model.calibrate import calibration
from dbdyno.model.machine import parse_machine


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["model", "calibrate", *arguments])


def series(seed: int, n: int, stays: tuple[float, float]) -> list[float]:
    """Return latencies of two states, 90 us and 4 ms, each of which lasts for a geometric number of requests [us]."""
    random_ = random.Random(seed)
    state, found = 0, []
    for _ in range(n):
        if random_.random() < 1 / stays[state]:
            state = 1 - state
        found.append(random_.lognormvariate(math.log((90.0, 4000.0)[state]), 0.3))
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("latencies") / "l.csv"
    path.write_text("write_us,kind\n" + "".join(f"{us:.3f},w\n" for us in series(1, 12_000, (800, 100))))
    return path


def test_a_column_of_a_file_becomes_a_device_that_a_machine_takes(table: Path, tmp_path: Path):
    place = tmp_path / "device.toml"
    assert run(str(table), "--column", "write_us", "-o", str(place)).exit_code == 0
    machine = 'title = "made"\n[storage]\nredo = "measured"\ndata = "measured"\n'
    made = parse_machine("model:made", machine + place.read_text())
    assert [part["kind"] for part in made.parts] == ["empirical"]


def test_the_page_says_what_fits_and_what_does_not(table: Path):
    shown = json.loads(run(str(table), "--format", "json").output)
    assert [f"p{q['p'] * 100:g}" for q in shown["quantiles"]] == ["p50", "p90", "p99", "p99.9"]
    assert all(q["low"] <= q["us"] * 1.003 <= q["high"] * 1.006 for q in shown["quantiles"])
    assert {"ks", "log_w1", "quantiles"} == set(shown["distance"]) == set(shown["floor"])
    assert len(shown["regimes"]) == 2
    text = run(str(table)).output
    assert "slow regime" in text
    assert 'kind = "empirical"' in text
    assert run(str(table), "--format", "html").exit_code == 0


def test_independent_latencies_get_one_table():
    random_ = random.Random(2)
    import numpy as np

    page = calibration(np.array([random_.lognormvariate(4, 0.4) for _ in range(20_000)]), name="d", title="made")
    assert page["regimes"] == []
    assert page["sentences"] == ["The table fits as well as these data can show."]


def test_waits_and_calls_of_a_run(tmp_path: Path):
    model_run(tmp_path, 5, transactions=40)
    waits = run("made", "--event", "log file sync", "--arm", "off", "--runs", str(tmp_path), "--format", "json")
    assert json.loads(waits.output)["n"] == 240
    some = run("made", "--calls", "commit", "--where", "arm = 'off'", "--runs", str(tmp_path), "--format", "json")
    assert json.loads(some.output)["n"] == 240


def test_arms_are_not_pooled_into_one_device(tmp_path: Path):
    model_run(tmp_path, 5, transactions=40)
    error = run("made", "--calls", "commit", "--runs", str(tmp_path)).exception
    assert isinstance(error, ModelError)
    assert "2 arms are too many" in str(error)
    assert "--arm" in str(error)
    one = run("made", "--calls", "commit", "--arm", "off", "--runs", str(tmp_path), "--format", "json")
    assert json.loads(one.output)["n"] == 240


def test_sampled_waits_are_no_latencies(tmp_path: Path):
    import duckdb

    path = tmp_path / "waits.parquet"
    with duckdb.connect() as made:
        made.execute(
            "copy (select 'WALSync' as event, 'sampled' as fidelity, 100_000_000::bigint as elapsed_ns"
            f" from range(500)) to '{path}' (format parquet)"
        )
    error = run(str(path), "--column", "elapsed_ns", "--unit", "ns").exception
    assert isinstance(error, ModelError)
    assert "sampled" in str(error)


def test_what_cannot_be_is_told_with_the_next_step(table: Path, tmp_path: Path):
    model_run(tmp_path, 5, transactions=2)
    for arguments, words in (
        (["made", "--runs", str(tmp_path)], "several kinds of latencies"),
        (["made", "--event", "x", "--calls", "y", "--runs", str(tmp_path)], "--event and --calls exclude each other"),
        ([str(table), "--where", "write_us < 20"], "too few"),
    ):
        error = run(*arguments).exception
        assert isinstance(error, ModelError)
        assert words in str(error)
    nameless = tmp_path / "n.csv"
    nameless.write_text("latency\n1\n2\n")
    assert "unit" in str(run(str(nameless)).exception)
