"""A machine calibrated from an arm has the costs of the server that ran it, and predicts that server's times."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from live_made import Truth, live_run, model, value

from calibrated import CALIBRATED
from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import find_run
from dbdyno.model.machine import parse_machine
from dbdyno.model.swap import with_device
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction.axes import axes_of
from dbdyno.study.prediction.fit import Machine, quantile_table
from dbdyno.study.prediction.observation import WRITE, observe, timed_waits
from dbdyno.study.prediction.parameter import toml_value
from dbdyno.study.prediction.scripts import steps_of
from dbdyno.study.prediction.server import as_parameters
from dbdyno.study.prediction.sizes import mean_kb, per_kb
from dbdyno.study.prediction.slopes import slope

TRUTH = Truth()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run `made`."""
    folder = tmp_path_factory.mktemp("runs")
    live_run(folder, TRUTH)
    return folder


def test_costs_of_the_server_are_found_again(machine: Machine):
    assert value(machine, "client_us") == pytest.approx(TRUTH.client_us, rel=0.01)
    assert value(machine, "flush_us") == pytest.approx(TRUTH.flush_us, rel=0.02)
    assert value(machine, "think")["us"] == pytest.approx(TRUTH.think_us, rel=0.05)
    server = sum(own["user_us"] + own["system_us"] for own in machine.statements)
    assert server == pytest.approx(TRUTH.server_us, rel=0.02)
    assert [own["user_us"] / (own["user_us"] + own["system_us"]) for own in machine.statements] == pytest.approx(
        [0.25] * 3
    )
    assert machine.statements[1]["wal_bytes"] == pytest.approx(TRUTH.wal_bytes, rel=0.01)
    by = dict(zip(value(machine, "delay")["probability"], value(machine, "delay")["us"], strict=True))
    assert by[0.51] == pytest.approx(TRUTH.delay_us * math.log(1 / 0.49), rel=0.25)
    assert value(machine, "delay_factor") == pytest.approx(1.0, abs=0.15)
    assert (value(machine, "cores"), value(machine, "wal_writer_delay_ms")) == (4, 100.0)


def test_the_device_is_what_a_sync_takes_without_its_cpu(machine: Machine):
    median = machine.device.parameters[0]
    assert median.value == pytest.approx(TRUTH.sync_us, rel=0.05)
    assert median.low < TRUTH.sync_us < median.high * 1.03


def test_every_parameter_says_where_it_comes_from_and_those_measured_by_block_have_an_interval(machine: Machine):
    assert {own.source for own in machine.parameters} <= {"measured", "fitted", "default"}
    assert all(own.how for own in [*machine.parameters, *machine.scheduler])
    for key in ("client_us", "flush_us", "cpu_factor", "device_factor"):
        own = next(own for own in machine.parameters if own.key == key)
        assert own.low <= own.value <= own.high, key


def test_the_file_is_a_machine_with_sources_and_intervals(file: Path):
    made = parse_machine("model:mine", file.read_text())
    rows = {row["path"]: row for row in made.parameters}
    assert rows["postgres.client_us"]["source"].startswith("measured")
    low, high = rows["postgres.client_us"]["interval"] or [math.nan, math.nan]
    assert low <= rows["postgres.client_us"]["value"] <= high
    assert model("check", str(file)).exit_code == 0
    assert "postgres.client_us" in model("show", str(file), "--format", "csv").output


def test_the_scheduler_of_a_machine_has_the_keys_that_the_model_reads():
    text = CALIBRATED + "[postgres.scheduler]\nhot_ms = 1.0\n"
    parse_machine("model:made", text)
    with pytest.raises(ModelError, match="balance_ms"):
        parse_machine("model:made", CALIBRATED + "[postgres.scheduler]\nwakeup_ms = 1.0\n")


class Sized(SimpleNamespace):
    """Observation of one session whose commits write 1 to 64 KB; each KB adds 0.25 us to the log write."""

    def waits_for(self, event: str) -> JsonObject:
        assert event == WRITE
        kb = self.calls["redo_bytes"] / 1024
        return {"started_ns": self.calls["started_ns"] + 1_000, "elapsed_ns": (5.0 + 0.25 * kb) * 1_000}


def test_what_a_kb_adds_to_a_wait_is_a_slope_over_the_log_of_its_commit():
    kb = np.tile(np.arange(1, 65), 5)
    starts = np.arange(len(kb)) * 1_000_000
    kinds = np.full(len(kb), "commit", dtype=object)
    elapsed = np.full(len(kb), 500_000)
    calls = {"kind": kinds, "started_ns": starts, "elapsed_ns": elapsed, "redo_bytes": kb * 1024}
    found = per_kb(Sized(sessions=1, calls=calls), WRITE)  # type: ignore[arg-type]
    assert found == pytest.approx((0.25, 0.25, 0.25))
    assert mean_kb(Sized(sessions=1, calls=calls)) == pytest.approx(32.5 + 8)  # type: ignore[arg-type]
    # Several sessions share a flush.
    assert per_kb(Sized(sessions=2, calls=calls), WRITE) is None  # type: ignore[arg-type]


def test_what_is_not_determined_is_named(machine: Machine, runs: Path):
    assert {"insert_us_per_kb", "device write_us_per_kb"} <= set(machine.undetermined)
    run = find_run("made", runs)
    seen = observe(run, measure(run), "off")
    with pytest.raises(ModelError, match="missing"):
        timed_waits(seen)


def test_the_fitted_arm_is_given_back_and_an_asynchronous_one_is_predicted(runs: Path, file: Path):
    shown = model("predict", "made", "--machine", str(file), "--runs", str(runs), "--format", "json")
    assert shown.exit_code == 0, shown.exception
    arms = {arm["arm"]: arm for arm in json.loads(shown.output)["arms"]}
    errors = {name: {row["metric"]: row["error"] for row in arm["metrics"]} for name, arm in arms.items()}
    assert arms["one"]["calibrated"]
    assert all(abs(errors["one"][metric]) < 0.06 for metric in ("throughput", "mean", "p50", "p90"))
    assert all(abs(errors["off"][metric]) < 0.08 for metric in ("throughput", "mean", "p50"))
    # The made run is one session's in every arm, so that what eight would do is not in it.
    assert set(errors) == {"one", "eight", "off"}
    waits = {row["class"]: row for row in arms["one"]["waits"]}
    assert waits["commit"]["model"] == pytest.approx(waits["commit"]["live"], rel=0.06)


@pytest.mark.usefixtures("html_page")
def test_a_prediction_is_a_page_in_every_form(runs: Path, file: Path, tmp_path: Path):
    html = tmp_path / "p.html"
    base = ("predict", "made", "-m", str(file), "--arm", "one", "--runs", str(runs))
    assert model(*base, "-o", str(html)).exit_code == 0
    assert "one (fitted)" in html.read_text()
    assert "live" in model(*base, "--format", "csv").output.splitlines()[0]
    text = model(*base).output
    assert "Error of the model for each arm" in text


def test_calibrating_is_one_command(runs: Path, tmp_path: Path):
    place = tmp_path / "mine.toml"
    done = model("calibrate", "made", "--arm", "one", "--runs", str(runs), "-o", str(place))
    assert done.exit_code == 0, done.exception
    assert "[postgres]" in place.read_text()
    shown = json.loads(model("calibrate", "made", "--arm", "one", "--runs", str(runs), "--format", "json").output)
    assert {"key", "value", "low", "high", "source", "how"} <= set(shown["parameters"][0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("calibrate", "made"), "fitted to one arm, but the run has 3"),
        (("calibrate", "made", "--arm", "two"), "has no arm 'two'"),
        (("predict", "made", "-m", "nothing.toml"), "cannot be read"),
        (("predict", "made", "-m", "sas-and-flash"), "has no calibrated PostgreSQL"),
    ],
)
def test_what_cannot_be_is_refused_with_the_next_step(arguments: tuple[str, ...], words: str, runs: Path):
    error = model(*arguments, "--runs", str(runs)).exception
    assert isinstance(error, ModelError)
    assert words in str(error)
    assert error.next_step


def test_sampled_waits_are_refused_with_the_way_to_better_ones(tmp_path: Path):
    live_run(tmp_path, Truth(fidelity="sampled"), blocks=3, transactions=40)
    error = model("calibrate", "made", "--arm", "one", "--runs", str(tmp_path)).exception
    assert isinstance(error, ModelError)
    assert "sampled" in str(error)
    assert 'waits = "read"' in str(error.next_step)


def test_rows_of_a_script_are_drawn_by_the_script_itself(tmp_path: Path):
    run = live_run(tmp_path, Truth(rows=5), blocks=3, transactions=5)
    seen = observe(run, measure(run), "one")
    (script,) = seen.steps.scripts
    locks = [step.get("lock") for step in script["steps"]]
    assert locks[0] is None
    assert set(locks[1]["rows"]) == {1, 2, 3, 4, 5}
    assert [step["commits"] for step in script["steps"]] == [False, False, True]
    many = live_run(tmp_path / "many", Truth(), blocks=3, transactions=5)
    assert all("lock" not in step for step in observe(many, measure(many), "one").steps.scripts[0]["steps"])


def test_a_zipfian_script_keeps_its_skew():
    from dbdyno.study.plan.file import parse_plan

    text = (
        'title = "z"\n[workload]\nscripts = [{text = "\\\\set id random_zipfian(1, 1000, 1.5)\\n'
        'update t set n = 1 where id = :id;\\n"}]\n[[arm]]\nname = "a"\n[[arm]]\nname = "b"\nsessions = 2\n'
    )
    plan = parse_plan(text, Path("z.toml"))
    steps = steps_of(plan, plan.arms[0])
    rows = steps.scripts[0]["steps"][0]["lock"]["rows"]
    share = rows.count(1) / len(rows)
    expected = 1 / sum(i**-1.5 for i in range(1, 1001))
    assert share == pytest.approx(expected, abs=0.06)
    assert steps.scripts[0]["steps"][0]["commits"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"synchronous_commit": "off"}, {"synchronous_commit": False}),
        ({"synchronous_commit": "remote_write"}, {"synchronous_commit": True}),
        ({"commit_delay": "200", "commit_siblings": "3"}, {"commit_delay_us": 200.0, "commit_siblings": 3}),
        ({"wal_writer_delay": "1s"}, {"wal_writer_delay_ms": 1000.0}),
    ],
)
def test_settings_become_parameters(settings: Mapping[str, str], expected: dict[str, object]):
    assert as_parameters(settings) == (expected, [])


def test_a_setting_that_the_model_lacks_is_said():
    assert as_parameters({"work_mem": "4MB"}) == (
        {},
        ["work_mem is not in the model: its effect is not predicted."],
    )


def test_a_slope_is_found_below_stalls_and_not_where_sizes_hardly_differ():
    import numpy as np

    dice = np.random.default_rng(3)
    sizes = dice.uniform(1.0, 64.0, 4_000)
    times = 200.0 + 8.0 * sizes + dice.exponential(20.0, 4_000)
    times[dice.random(4_000) < 0.03] += 50_000.0
    found = slope(sizes, times)
    assert found is not None
    assert found[1] <= 8.0 <= found[2]
    assert found[0] == pytest.approx(8.0, rel=0.05)
    assert slope(np.full(4_000, 8.0), times) is None


def test_measured_quantiles_are_a_table_that_the_core_takes(machine: Machine):
    import numpy as np

    made = quantile_table(np.array([1.0, 2.0, 3.0] * 50))
    assert len(made["probability"]) == len(made["us"]) == 81
    assert made["probability"] == sorted(set(made["probability"]))


def test_texts_of_statements_are_toml_whatever_is_in_them():
    import tomllib

    for text in ('a "quoted" \\ word', "two\nlines", "é – 漢", "tab\there"):
        assert tomllib.loads(f"x = {toml_value(text)}")["x"] == text
    assert tomllib.loads(f"x = {toml_value([1.0, 2.5e-7, True, {'a': 3}])}")["x"] == [1.0, 2.5e-7, True, {"a": 3}]


@pytest.mark.soak
def test_what_if_gives_curves_with_a_band_and_says_what_binds(file: Path):
    arguments = (
        "whatif",
        str(file),
        "--set",
        "sessions=1,8",
        "--set",
        "device=measured,nvme-2024",
        "--format",
        "json",
    )
    shown = json.loads(model(*arguments).output)
    assert [(p["sessions"], p["device"]) for p in shown["points"]][:3] == [
        ("1", "measured"),
        ("1", "nvme-2024"),
        ("8", "measured"),
    ]
    assert all(p["low"] <= p["throughput"] <= p["high"] for p in shown["points"])
    by = {(p["sessions"], p["device"]): p["throughput"] for p in shown["points"]}
    assert by["1", "nvme-2024"] > by["1", "measured"]
    assert by["8", "measured"] > 3 * by["1", "measured"]
    assert any("extrapolation" in text for text in shown["sentences"])
    assert any("knee" in text or "still rises" in text for text in shown["sentences"])
    assert shown["figures"]["sweep"]["x_label"] == "sessions"


def test_prices_give_transactions_for_money(file: Path, tmp_path: Path, one_draw: None):
    prices = tmp_path / "prices.toml"
    prices.write_text("core = 0.05\n[devices]\ngp3 = 0.01\n")
    base = ("whatif", str(file), "--set", "device=gp3", "--set", "cores=2,4", "--cost", str(prices))
    shown = json.loads(model(*base, "--format", "json").output)
    for point in shown["points"]:
        hour = 0.05 * int(point["cores"]) + 0.01
        assert point["per_money"] == pytest.approx(point["throughput"] * 3600 / hour)
    prices.write_text("core = 'cheap'\n")
    assert "is not a price" in str(model(*base).exception)


@pytest.mark.parametrize("text", ["sessions", "sessions=", "=1", "sessions=8..2", "sessions=0..4", "sessions=a..b"])
def test_an_axis_that_cannot_be_one_is_refused(text: str):
    with pytest.raises(ModelError):
        axes_of([text])


def test_a_range_doubles_and_ends_at_its_end():
    assert axes_of(["sessions=1..100"])[0].levels == ("1", "2", "4", "8", "16", "32", "64", "100")
    with pytest.raises(ModelError, match="set twice"):
        axes_of(["cores=1", "cores=2"])


def test_a_device_is_swapped_and_all_else_stays(machine: Machine):
    swapped = with_device(machine.toml(), "gp3")
    made = parse_machine("model:swapped", swapped)
    assert [part["kind"] for part in made.parts] == ["volume"]
    before = {row["path"]: row["value"] for row in parse_machine("model:mine", machine.toml()).parameters}
    after = {row["path"]: row["value"] for row in made.parameters}
    assert {key: own for key, own in before.items() if key.startswith("postgres.")} == {
        key: own for key, own in after.items() if key.startswith("postgres.")
    }
    with pytest.raises(ModelError, match="no device"):
        with_device(machine.toml(), "floppy")
