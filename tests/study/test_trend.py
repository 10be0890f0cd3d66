"""All runs of a plan over time: a planted change gets its date and size; runs of other machines are left out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from command_line import dbdyno, succeeded
from dbdyno.evidence.run import Run, list_runs
from dbdyno.report import figures
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from dbdyno.study.analysis.trend import trend_of
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start
from mock_plans import two_arms

TURN = "100ms"
BEGIN = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)


StartRun = Callable[[str, int, Path], Run]
"""Function from the text of a plan, a seed and the folder of the runs to a complete run."""
Nights = Callable[..., list[Run]]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Return `made_nights` with a run of each plan and seed that is made only once, and copied from then on."""
    folder = tmp_path_factory.mktemp("runs")
    known: dict[tuple[str, int], Path] = {}

    def copied(text: str, seed: int, runs: Path) -> Run:
        if (text, seed) not in known:
            known[text, seed] = start(parse_plan(text, Path("p.toml")), folder, seed=seed).path
        return Run.open(shutil.copytree(known[text, seed], runs / known[text, seed].name))

    return partial(made_nights, copied)


def made_nights(
    start_run: StartRun, folder: Path, means_us: list[int], *, failing: Sequence[int] = (), both: bool = False
) -> list[Run]:
    """A run for each night; all say that they were made with the plan of the first. In those that are `failing` half of
    arm one's transactions do; where it is the machine that changes, `both` arms have its means."""
    (folder / "p.toml").write_text(two_arms(means_us[0], turn=TURN))
    fails = 'name = "one"\nparameters = {mean_us = 1000, errors = 0.5}'
    texts = [two_arms(mean, turn=TURN) for mean in means_us]
    texts = [text.replace('name = "one"', fails) if at in failing else text for at, text in enumerate(texts)]
    if both:
        texts = [
            text.replace("mean_us = 800", f"mean_us = {8 * mean // 10}")
            for text, mean in zip(texts, means_us, strict=True)
        ]
    plan = parse_plan(texts[0], Path("p.toml")).to_dict()
    runs = []
    for night, text in enumerate(texts):
        run = start_run(text, night, folder / "runs")
        began = (BEGIN + timedelta(days=night)).isoformat()
        run.save(plan=plan, started_at=began)
        path = run.path.with_name(f"2026-11-{night + 1:02d}-nightly-{night:04d}")
        run.path.rename(path)
        runs.append(Run(path, run.manifest))
    return runs


def canaries(run: Run, cpu_ns: float) -> None:
    for file in (run.path / "blocks").glob("b*.json"):
        record = json.loads(file.read_text())
        record["canaries"] = {"cpu_ns": cpu_ns}
        file.write_text(json.dumps(record))


@pytest.fixture(scope="module")
def changed(nights: Nights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trend")
    nights(folder, [1000] * 7 + [1150] * 6)
    return folder


def test_a_change_is_told_with_its_day_its_run_and_its_size(changed: Path):
    done = dbdyno("trend", "p.toml", "--level", cwd=changed, COLUMNS="120")
    assert done.returncode == 1, done.stderr
    assert "SLOWER" in done.stdout
    assert "2026-11-08 03:00 (2026-11-08-nightly-0007)" in done.stdout.replace("\n", " ")
    model = json.loads(dbdyno("trend", "p.toml", "--level", "--format", "json", cwd=changed).stdout)
    one, two = model["arms"]
    assert [change["run"] for change in one["changes"]] == [7]
    assert one["changes"][0]["low"] < 1 / 1.15 < one["changes"][0]["high"]
    assert one["changes"][0]["first"] <= 7 <= one["changes"][0]["last"]
    assert model["verdict"]["sentences"][0].startswith("It began with ")
    assert two["changes"] == []
    rows = dbdyno("trend", "p.toml", "--format", "csv", cwd=changed).stdout.splitlines()
    assert len(rows) == 1 + 2 * 13


def test_a_part_of_the_time_may_hold_no_change(changed: Path):
    done = succeeded("trend", "p.toml", "--from", "2026-11-08", cwd=changed)
    assert "too few for a trend" in done.stdout


def test_runs_of_a_machine_in_another_state_are_shown_and_count_for_none(nights: Nights, tmp_path: Path):
    runs = nights(tmp_path, [1000] * 9 + [1400] * 4)
    for at, run in enumerate(runs):
        canaries(run, 5e6 if at < 9 else 7e6)
    model = trend_of(list(list_runs(tmp_path / "runs")), "p.toml", levels=True)
    assert [row["comparable"] for row in model["runs"]] == [True] * 9 + [False] * 4
    assert [arm["changes"] for arm in model["arms"]] == [[], []]
    verdict = model["verdict"]
    assert (verdict["decision"], verdict["headline"]) == ("not found", "No change found in 9 runs.")
    assert "would be found four times out of five" in verdict["sentences"][0]
    text = render_text(model, width=140, color=False)
    assert text.count("not comparable") == 4
    assert "4 of 13 runs were made on another machine" in text
    assert 'id="trend_runs"' in render_html(model)


def test_an_arm_that_fails_has_no_trend_of_its_quick_remains(nights: Nights, tmp_path: Path):
    """Half of the transactions failed since five nights, and it was "No change found", exit 0."""
    nights(tmp_path, [1000] * 10, failing=range(5, 10))
    done = dbdyno("trend", "p.toml", cwd=tmp_path, COLUMNS="160")
    assert done.returncode == 1, done.stderr
    assert "NO VERDICT" in done.stdout
    assert "transactions failed in the last run (2026-11-10-nightly-0009)" in done.stdout
    model = json.loads(dbdyno("trend", "p.toml", "--level", "--format", "json", cwd=tmp_path).stdout)
    assert [len(row["failed"]) for row in model["runs"]] == [0] * 5 + [1] * 5
    assert [arm["runs"] for arm in model["arms"]] == [5, 10]
    assert any("in 5 of 10 runs: these runs are not judged" in own["text"] for own in model["warnings"])
    rows = dbdyno("trend", "p.toml", "--level", "--format", "csv", cwd=tmp_path).stdout.splitlines()
    assert sum(row.split(",")[-2].lower() == "true" for row in rows[1:]) == 15


def test_an_arm_counts_for_no_change_where_its_base_failed(nights: Nights, tmp_path: Path):
    model = trend_of(nights(tmp_path, [1000] * 10, failing=range(5, 10)), "p.toml")
    assert [(arm["name"], arm["base"], arm["runs"]) for arm in model["arms"]] == [("two", "one", 5)]


def test_seven_runs_could_show_no_change_and_say_so(nights: Nights, tmp_path: Path):
    model = trend_of(nights(tmp_path, [1000] * 7), "p.toml")
    verdict = model["verdict"]
    assert (verdict["decision"], verdict["headline"]) == ("unclear", "7 runs are too few for a trend.")


def test_a_machine_that_slows_is_no_change_of_an_arm_with_a_base(nights: Nights, tmp_path: Path):
    """Its level changed by 15 % with that of its base: "slower", exit 1. Its ratio did not."""
    runs = nights(tmp_path, [1000] * 7 + [1150] * 6, both=True)
    model = trend_of(runs, "p.toml")
    (two,) = model["arms"]
    assert (model["follows"], model["unit"], two["changes"], two["drift"]) == ("ratio", "ratio", [], None)
    assert model["verdict"]["decision"] == "not found"
    assert all(abs(row["values"]["two"] / 1.25 - 1) < 0.1 for row in model["runs"])
    (warned,) = [own for own in model["warnings"] if own["code"] == "base"]
    assert warned["text"].startswith("one, the base, itself became 1")
    text = render_text(model, width=160, color=False)
    assert "two to one" in text and "one (base)" in text
    page = render_html(model)
    assert "ratio to the base arm" in page and "<code>--level</code> uses the arm" in page
    by_level = trend_of(runs, "p.toml", levels=True)
    assert [[one["run"] for one in arm["changes"]] for arm in by_level["arms"]] == [[7], [7]]
    assert "level of each arm" in render_html(by_level)


def test_a_slow_drift_is_told_as_one_and_is_no_change_at_a_run(nights: Nights, tmp_path: Path):
    """A straight line up by a half in 14 runs was "slower since" the run in its middle."""
    runs = nights(tmp_path, [1000 + 40 * night for night in range(14)], both=True)
    model = trend_of(runs, "p.toml", levels=True)
    assert [arm["changes"] for arm in model["arms"]] == [[], []]
    assert all(arm["drift"]["step"] is None and 0.55 < arm["drift"]["ratio"] < 0.75 for arm in model["arms"])
    assert model["verdict"]["decision"] == "unclear"
    assert model["verdict"]["headline"].startswith("one drifts: ")
    assert "It did not change at one single run" in model["verdict"]["sentences"][0]
    assert "drifts: " in render_text(model, width=160, color=False)
    assert dbdyno("trend", "p.toml", "--level", cwd=tmp_path).returncode == 0


def test_the_help_says_what_is_tested():
    text = " ".join(dbdyno("trend", "--help").stdout.split())
    for words in ("resemble the runs before them", "two modes", "a single odd run", "a steady drift", "--level"):
        assert words in text


def test_the_picture_has_every_run_and_the_level_before_and_after(changed: Path):
    model = json.loads(dbdyno("trend", "p.toml", "--level", "--format", "json", cwd=changed).stdout)
    spec = json.dumps(figures.draw("trend", model).to_dict(validate=True))
    assert spec.count("2026-11-08") >= 2
    assert all(f"2026-11-{night:02d}" in spec for night in range(1, 14))


def test_a_metric_may_be_named_and_an_unknown_one_is_refused(changed: Path):
    done = dbdyno("trend", "p.toml", "--level", "--metric", "p50", "--format", "json", cwd=changed)
    assert json.loads(done.stdout)["unit"] == "ns"
    assert done.returncode == 1
    assert dbdyno("trend", "p.toml", "--metric", "speed", cwd=changed).returncode == 2


def test_a_plan_without_runs_says_so(tmp_path: Path):
    (tmp_path / "p.toml").write_text(two_arms(turn=TURN))
    done = dbdyno("trend", "p.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no run yet" in done.stderr


def test_runs_on_another_engine_are_left_out_and_said_to_be(nights: Nights, tmp_path: Path):
    """The same plan on PostgreSQL and then on MariaDB is no change of the plan's own."""
    runs = nights(tmp_path, [1000] * 5 + [1500] * 8)
    for run in runs[:5]:
        run.save(bench="postgres")
    trend = trend_of([Run(run.path, run.manifest) for run in runs], "p")
    assert [row["run"] for row in trend["runs"]] == [run.id for run in runs[5:]]
    assert [arm["changes"] for arm in trend["arms"]] == [[]]
    said = [own["text"] for own in trend["warnings"]]
    assert "5 of 13 runs of this plan used a different engine from the last run (mock)" in said
    assert any(text.startswith("no run has canaries of its machine") for text in said)


def test_runs_of_one_day_are_named_by_their_time(changed: Path):
    """Seven marks of the axis said the same date."""
    trend = trend_of(list(list_runs(changed / "runs")), "p")
    for at, row in enumerate(trend["runs"]):
        row["started_at"] = f"2026-11-01T{at:02d}:30:00+00:00"
    drawn = json.dumps(figures.draw("trend", dict(trend)).to_dict())
    assert "03:30" in drawn or "02:30" in drawn
    assert "runs of 2026-11-01 in order of time (UTC)" in drawn
