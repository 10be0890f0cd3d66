"""Results of factors: curves planted in the times of a mock bench, from the plan to the page."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import dbdyno, succeeded
from dbdyno.base.errors import PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.report.figures import sweep
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from dbdyno.stats.decide import WithheldVerdict
from dbdyno.stats.levels import compare_levels
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.analysis.checks.gates import withhold_verdict
from dbdyno.study.analysis.questions.factors import axis_of, numbers_of
from dbdyno.study.analysis.questions.level_sentences import sentence
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start
from mock_plans import mock_plan


def factor(name: str, times_us: dict[str, float]) -> str:
    levels = ", ".join(f'{{name = "{level}", parameters = {{mean_us = {us}}}}}' for level, us in times_us.items())
    return f'[[factor]]\nname = "{name}"\nlevels = [{levels}]\n'


def judged(folder: Path, factors: str, *, seed: int = 1, **options: Any) -> dict[str, Any]:
    plan = parse_plan(mock_plan(factors, **options), Path("p.toml"))
    return analyse(start(plan, folder, seed=seed))


FETCH = {"1": 9000, "10": 1000, "100": 510, "1000": 500, "10000": 500}


@pytest.mark.soak
def test_the_knee_is_the_headline_with_what_it_gains_and_what_more_brings(tmp_path: Path):
    model = judged(tmp_path, factor("fetch", FETCH), blocks=30, turn="200ms")
    assert model["verdict"]["decision"] == "found"
    (curve,) = model["factors"]["curves"]
    assert curve["course"] == "rises"
    assert (curve["knee_low"], curve["knee_high"]) in ((2, 2), (2, 3), (3, 3))
    assert [row["level"] for row in curve["levels"]] == list(FETCH)
    assert math.isclose(curve["levels"][4]["ratio"], 18, rel_tol=0.1)
    text = render_text(model, width=100, color=False)
    assert "fetch" in text.splitlines()[1]
    assert "LEVELS" in text.upper()
    assert "brings no difference larger than 2 %" in text or "The knee lies between fetch 100 and 1000" in text


def test_a_reason_that_takes_the_verdict_of_several_arms_is_said_once():
    """The base drifted: the headline stood a second time below itself, for the other arms."""
    model: JsonObject = {"verdict": {}, "kind": "sweep", "metrics": []}
    withhold_verdict(
        model,
        {name: WithheldVerdict(why) for name, why in (("b", "It drifted."), ("c", "It drifted."), ("d", "Lost."))},
    )
    assert (model["verdict"]["headline"], model["verdict"]["sentences"]) == ("It drifted.", ["Lost."])
    assert [own["arm"] for own in model["verdict"]["withheld"]] == ["b", "c", "d"]


def test_an_answer_from_fewer_blocks_than_chance_needs_is_provisional(tmp_path: Path):
    """It was FOUND, above a gate that said that five blocks make it provisional."""
    for blocks, decision in ((5, "provisional"), (6, "found")):
        model = judged(tmp_path, factor("fetch", {"1": 9000, "10": 1000}), blocks=blocks, turn="200ms")
        assert model["verdict"]["decision"] == decision
        (gate,) = [own for own in model["gates"] if own["code"] == "blocks"]
        assert gate["ok"] is (decision == "found")


def test_levels_out_of_order_are_told_in_the_order_of_their_numbers(tmp_path: Path):
    model = judged(tmp_path, factor("fetch", {"100": 500, "1": 4000, "10": 1000}))
    (curve,) = model["factors"]["curves"]
    assert [row["level"] for row in curve["levels"]] == ["1", "10", "100"]
    assert "it still grows at fetch 100" in curve["sentence"]


def drifting(times_us: dict[str, float], drifts: dict[str, float]) -> str:
    levels = ", ".join(
        f'{{name = "{level}", parameters = {{mean_us = {us}, drift = {drifts.get(level, 2.0)}}}}}'
        for level, us in times_us.items()
    )
    return f'[[factor]]\nname = "fetch"\nlevels = [{levels}]\n'


def test_a_base_that_drifts_leaves_a_sweep_its_answer_where_the_ratios_hold_still(tmp_path: Path):
    """All arms became three times as slow: ratios within blocks were known, and there was no verdict."""
    model = judged(tmp_path, drifting({"1": 9000, "10": 1000, "100": 500}, {}), blocks=16, turn="200ms")
    assert model["verdict"]["decision"] == "found"
    assert "It still grows at fetch 100" in model["verdict"]["headline"]
    assert any(said.startswith("The base drifted by half or more") for said in model["verdict"]["sentences"])
    (gate,) = [own for own in model["gates"] if own["name"].startswith("no drift of mean")]
    assert gate["ok"] is False and gate["effect"] == "warns" and "the ratios stayed the same" in gate["text"]
    assert not model["verdict"]["withheld"]


def test_a_ratio_of_levels_that_drifts_takes_the_verdict_of_the_sweep_away(tmp_path: Path):
    """The base becomes three times as slow and one level does not: its ratio is of no part of the run."""
    own = drifting({"1": 2000, "10": 1000, "100": 500}, {"10": 0.0})
    model = judged(tmp_path, own, blocks=16, turn="200ms")
    assert model["verdict"]["decision"] == "no verdict"
    assert "moved with it" in model["verdict"]["headline"] and "drifted +" in model["verdict"]["headline"]


@pytest.mark.soak
@pytest.mark.parametrize(("drift", "seed"), [(0.0, 100), (2.0, 200)])
def test_sweeps_of_equal_levels_keep_their_level_though_the_base_drifts(tmp_path: Path, drift: float, seed: int):
    """From the plan to the verdict, 200 sweeps of four equal levels: whatever is told of them is false."""
    false = moved = 0
    for at in range(200):
        plan = drifting(dict.fromkeys("1234", 1000), dict.fromkeys("1234", drift))
        model = judged(tmp_path / str(at), plan, seed=seed + at, blocks=8, turn="50ms")
        moved += model["verdict"]["decision"] == "no verdict"
        (curve,) = model["factors"]["curves"]
        false += any(row["low"] > 1 or row["high"] < 1 for row in curve["levels"][1:]) or curve["knee_low"] > 0
    print(f"{false} of 200, {moved} moved")
    assert moved <= 0.01 * 200 + 2 * math.sqrt(200 * 0.01 * 0.99)
    assert false <= 0.05 * 200 + 2 * math.sqrt(200 * 0.05 * 0.95)


def test_levels_without_any_difference_are_said_to_bring_none(tmp_path: Path):
    model = judged(tmp_path, factor("x", {"1": 1000, "2": 1000, "3": 1000}), blocks=12)
    (curve,) = model["factors"]["curves"]
    assert not any(row["low"] > 1 or row["high"] < 1 for row in curve["levels"][1:])


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of a factor whose levels are words."""
    return judged(tmp_path_factory.mktemp("forms"), factor("form", {"join": 1000, "exists": 400, "in": 1600}))


def test_words_are_levels_too_and_stand_side_by_side(forms: dict[str, Any]):
    model, sweep = forms, forms["figures"]["sweep"]
    assert sweep["x_words"] == ["join", "exists", "in"]
    assert [point["x"] for point in sweep["curves"][0]["points"]] == [1, 2, 3]
    assert (
        model["verdict"]["headline"].startswith("form exists is best, 2.4")
        or "form exists is best" in model["verdict"]["headline"]
    )
    page = render_html(model)
    assert "exists" in page
    assert 'id="factors"' in page


def test_factors_that_act_on_each_other_are_named_with_both_effects(tmp_path: Path):
    times = {("small", "1"): 1000, ("small", "8"): 1000, ("large", "1"): 1000, ("large", "8"): 500}
    arms = "".join(
        f'[[arm]]\nname = "{memory} {n}"\nparameters = {{mean_us = {us}}}\n' for (memory, n), us in times.items()
    )
    plan = parse_plan(mock_plan(arms, blocks=12), Path("p.toml"))
    levels = [{"memory": memory, "n": n} for memory, n in times]
    own = [replace(arm, levels=level) for arm, level in zip(plan.arms, levels, strict=True)]
    plan = replace(plan, arms=own, factors=["memory", "n"], kind="sweep")
    model = analyse(start(plan, tmp_path, seed=1))
    (found,) = model["factors"]["interactions"]
    assert found["certain"]
    assert found["low"] < 2 < found["high"]
    assert any("memory and n interact" in sentence.lower() for sentence in model["verdict"]["sentences"])


def test_why_is_told_of_the_two_arms_of_the_headline(tmp_path: Path):
    """ "At n 8: memory large is best" was followed by the reasons of (8, large) against (1, small)."""
    times = {("small", "1"): 1000, ("large", "1"): 1000, ("small", "8"): 3000, ("large", "8"): 600}
    levels = [{"memory": memory, "n": n} for memory, n in times]
    arms = "".join(f'[[arm]]\nname = "{m} {n}"\nparameters = {{mean_us = {us}}}\n' for (m, n), us in times.items())
    plan = parse_plan(mock_plan(arms, blocks=8), Path("plan.toml"))
    own = [replace(arm, levels=level) for arm, level in zip(plan.arms, levels, strict=True)]
    plan = replace(plan, arms=own, factors=["memory", "n"], kind="sweep", judge=replace(plan.judge, factor="memory"))
    model = analyse(start(plan, tmp_path, seed=1))
    assert model["verdict"]["headline"].startswith("At n 8: memory large is best")
    assert [one["of"] for one in model["why"]] == ["large 8 against small 8"]
    assert model["factors"]["answer"] == {"arm": 3, "base": 2}


def test_why_says_that_more_sessions_do_more_though_each_transaction_takes_longer(tmp_path: Path):
    """ "4 sessions are 2.80 times as fast" stood above "11.8 ms more a transaction"."""
    run = start(parse_plan(mock_plan(factor("sessions", {"1": 900, "4": 1300}), blocks=6), Path("p.toml")), tmp_path)
    manifest = json.loads((run.path / "manifest.json").read_text())
    manifest["arms"][1]["sessions"] = 4  # a mock has one session, whatever the plan says
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    (why,) = analyse(Run.open(run.path))["why"]
    assert why["amount"] > 0
    assert why["notes"][0].startswith("4 sessions work at once instead of 1. The throughput is not 4 times as large")
    assert why["notes"][0].endswith(", because each transaction takes longer.")


def test_one_at_a_time_gives_a_curve_per_factor_and_no_interaction(tmp_path: Path):
    two = factor("a", {"1": 1000, "2": 500}) + factor("b", {"x": 1000, "y": 1500})
    model = judged(tmp_path, two, top='design = "one-at-a-time"')
    assert [curve["factor"] for curve in model["factors"]["curves"]] == ["a", "b"]
    assert model["factors"]["interactions"] == []


def test_an_arm_that_fails_takes_the_verdict_away(tmp_path: Path):
    bad = '[[factor]]\nname = "x"\nlevels = [{name = "1"}, {name = "2", parameters = {errors = 0.5}}]\n'
    model = judged(tmp_path, bad)
    assert model["verdict"]["decision"] == "no verdict"


def test_the_table_json_and_csv_hold_the_levels(tmp_path: Path):
    (tmp_path / "p.toml").write_text(mock_plan(factor("fetch", FETCH), blocks=6))
    done = succeeded("run", "p.toml", "--seed", "3", cwd=tmp_path, COLUMNS="100")
    assert "of the best" in done.stdout
    model = json.loads(dbdyno("compare", "last", "--format", "json", cwd=tmp_path).stdout)
    assert model["factors"]["names"] == ["fetch"]
    rows = dbdyno("compare", "last", "--format", "csv", cwd=tmp_path).stdout.splitlines()
    assert len(rows) == 1 + len(FETCH)


def test_numbers_sizes_and_durations_are_axes_and_mixtures_are_not():
    assert numbers_of(["1", "2.5"]) == [1, 2.5]
    assert numbers_of(["64kB", "4MB"]) == [65536, 4194304]
    assert numbers_of(["5ms", "1s"]) == [0.005, 1]
    assert numbers_of(["5ms", "4MB"]) is None
    assert numbers_of(["on", "off"]) is None


def test_the_axis_is_the_factor_with_most_numbers():
    sessions = [{"sessions": s, "memory": m} for s in ("1", "2", "4") for m in ("1MB", "2MB")]
    assert axis_of(sessions) == "sessions"
    assert axis_of([{"rows": r, "sessions": s} for r in ("1", "10", "100") for s in ("1", "2")]) == "rows"
    assert axis_of([{"rows": r, "sessions": s} for r in ("1", "10") for s in ("1", "2")]) == "sessions"
    assert axis_of([{"form": f} for f in ("join", "in")]) == "form"


def test_the_factor_that_the_plan_asks_about_comes_first(tmp_path: Path):
    """Rows are numbers, so their curve led: "rows 10 is best" answers nobody who asks about drivers."""
    text = factor("rows", {"10": 100, "1000": 4000})
    text += (
        '[[factor]]\nname = "driver"\nlevels = [{name = "lean"}, {name = "frame", parameters = {shape = "constant"}}]\n'
    )
    asked = judged(tmp_path, '[verdict]\nfactor = "driver"\n' + text, blocks=4)
    assert asked["factors"]["axis"] == "driver"
    assert asked["verdict"]["headline"].startswith("At rows 10: driver")
    assert judged(tmp_path, text, blocks=4)["factors"]["axis"] == "rows"


def test_a_factor_that_the_plan_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(PlanError, match="the plan has no factor 'drivers'") as refused:
        parse_plan(mock_plan('[verdict]\nfactor = "drivers"\n' + factor("x", {"1": 1, "2": 2})), Path("p.toml"))
    assert refused.value.next_step == "one of x"


def test_no_gain_is_not_told_as_no_difference():
    """100 rows against 10,000: 2.7 times as slow, 0.4 % slower to 7 times; it said that more brings no difference."""
    swing = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    unsure = np.exp(np.column_stack([0 * swing, -1 + 0.861 * swing]))
    found = compare_levels(unsure, threshold=0.02, level=0.95)
    words = "rows 1 reaches 100 % of the best; more brings no gain larger than 2 %: rows 2 is 2.72 times as slow (1.01"
    assert sentence("rows", ["1", "2"], found, ordered=True).startswith(words)
    alike = np.exp(np.column_stack([-1 + 0.001 * swing, 0 * swing, 0.001 * swing]))
    found = compare_levels(alike, threshold=0.02, level=0.95)
    assert sentence("rows", ["1", "2", "3"], found, ordered=True).endswith("more brings no difference larger than 2 %")


def test_a_level_that_counts_something_has_the_verb_of_its_number():
    """It was "16 sessions reaches" and "fetch_size 100 reaches"; the step to the knee was not told."""
    noise = np.random.default_rng(1).normal(0.0, 0.001, (8, 4))
    found = compare_levels(np.array([1.0, 10.0, 30.0, 30.0]) * np.exp(noise), threshold=0.02, level=0.95)

    def of(factor: str) -> str:
        return sentence(factor, ["1", "10", "100", "1000"], found, ordered=True)

    assert of("fetch_size").startswith("100 rows a fetch reach 100 % of the best, 30.0 times as fast (")
    assert " against 1 and 3.00 times as fast (" in of("fetch_size") and " against 10; more brings no " in of("jobs")
    assert of("work_mem").startswith("work_mem 100 reaches") and of("jobs").startswith("100 jobs reach ")
    worse = compare_levels(np.array([3.0, 1.0, 1.0, 1.0]) * np.exp(noise), threshold=0.02, level=0.95)
    said = sentence("sessions", ["1", "2", "4", "16"], worse, ordered=True)
    assert said.startswith("1 session is best; then it gets worse: 16 sessions are 3.0")
    two = compare_levels(np.array([1.0, 3.0]) * np.exp(noise[:, :2]), threshold=0.02, level=0.95)
    said = sentence("sessions", ["1", "4"], two, ordered=True)
    assert said.startswith("it still grows at 4 sessions: ") and said.count("against") == 1, "both steps are the same"
    flat = compare_levels(np.exp(noise), threshold=0.02, level=0.95)
    said = sentence("threads", ["1", "2", "4", "8"], flat, ordered=True)
    assert said.startswith("1 to 8 threads bring no difference")


@pytest.mark.drawn
def test_the_figure_of_words_is_drawn_with_its_words(forms: dict[str, Any]):
    assert ">exists</text>" in render_html(forms)


def test_of_words_the_best_is_told_against_whom_and_how_far_behind_the_last_is() -> None:
    """Several may be best: a change without its other side says nothing."""
    noise = np.random.default_rng(1).normal(0.0, 0.03, (8, 4))
    found = compare_levels(np.array([100.0, 101.0, 60.0, 20.0]) * np.exp(noise), threshold=0.02, level=0.95)
    said = sentence("client", ["own", "jdbc", "adbc", "r"], found, ordered=False)
    assert said.startswith("client r is 5.0"), "what is certain came behind what is not"
    assert " against jdbc; client jdbc has the best mean, " in said
    assert " against own; own may also be best" in said
    found = compare_levels(np.array([20.0, 100.0, 101.0]) * np.exp(noise[:, :3]), threshold=0.02, level=0.95)
    said = sentence("place", ["disk", "cache", "flash"], found, ordered=False)
    assert said.count("disk") == 1 and said.count("against") == 2, "the first was told twice where it is the worst"
    swing = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    spread = np.exp(np.column_stack([0 * swing, -0.3 + 0.5 * swing, -0.1 + 0.4 * swing[::-1]]))
    found = compare_levels(spread, threshold=0.02, level=0.95)
    said = sentence("client", ["own", "psycopg", "jdbc"], found, ordered=False)
    assert " against jdbc; psycopg, jdbc may also be best" in said, "the nearest of them, not the first in the plan"
    assert said.endswith("; to tell client own from jdbc needs about 316 blocks"), "there was no next step"
    said = sentence("threads", ["1", "2", "4"], found, ordered=True)
    assert said.startswith(
        "6 blocks cannot tell where threads is best: 1 thread is, by the means; 4 threads are 9.5 % slower"
    )
    assert said.endswith("; to tell 1 thread from 2 needs about 43 blocks")


@pytest.mark.drawn
def test_a_planted_scalability_law_is_told_with_all_its_parameters_and_drawn(tmp_path: Path):
    """Of one's own throughput and of the most there was no interval; the line of the law was not on the page."""
    law = {n: 1000 * n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}
    model = judged(tmp_path, factor("sessions", {str(n): 1e6 / rate for n, rate in law.items()}), blocks=8)
    (curve,) = model["factors"]["curves"]
    assert curve["law"]["law"] == "usl" and curve["law"]["holds"]
    peak = (0.95 / 0.002) ** 0.5
    planted = {"g": 1000, "s": 0.05, "k": 0.002, "peak": peak, "most": 7396}
    for name, value in planted.items():
        found = curve["law"]["parameters"][name]
        assert found["low"] < found["value"] < found["high"] and found["value"] == pytest.approx(value, rel=0.1)
    said = curve["law"]["sentence"]
    assert said.startswith("scalability law: ") and " a second with one, contention " in said and "coherence 0." in said
    assert re.search(r" at 2\d\.\d sessions \([^)]*\): 7", said) and "beyond" not in said
    drawn = model["figures"]["sweep"]["curves"][0]["law"]
    assert [drawn[0]["x"], drawn[-1]["x"]] == [1, 32]
    assert all(point["per_s"] == pytest.approx(law[32], rel=0.1) for point in drawn[-1:])
    page = render_html(model)
    assert 'stroke-dasharray="3,3"' in page and said.split(" (within")[0] in " ".join(page.split())


def test_a_most_beyond_the_levels_is_said_to_be_no_measurement(tmp_path: Path):
    law = {n: 1000 * n / (1 + 0.01 * (n - 1) + 0.002 * n * (n - 1)) for n in (1, 2, 4, 6, 8, 12, 16)}
    model = judged(tmp_path, factor("sessions", {str(n): 1e6 / rate for n, rate in law.items()}), blocks=8)
    said = model["factors"]["curves"][0]["law"]["sentence"]
    assert f"S{said[1:]}." in model["verdict"]["sentences"]
    assert ", beyond the 16 that were run: " in said, said


def test_a_saturation_beyond_the_levels_is_said_to_be_no_measurement(tmp_path: Path):
    """16 sessions were the most that ran, and "half of its most is reached at 58.4 sessions"."""
    law = {n: 40_000 * n / (n + 58) for n in (1, 2, 4, 8, 16, 32)}
    model = judged(tmp_path, factor("rows", {str(n): 1e6 / rate for n, rate in law.items()}), blocks=6)
    said = model["factors"]["curves"][0]["law"]["sentence"]
    assert said.startswith("bends as if it saturated beyond the 32 that were run: half of its most at rows 5"), said
    assert "which is no measurement" in said


def test_no_line_joins_levels_that_are_words(forms: dict[str, Any], tmp_path: Path):
    """A line from one driver to the next says that something lies between them."""
    numbers = judged(tmp_path, factor("rows", {"1": 1000, "2": 400, "4": 1600}), blocks=3)
    lines = [json.dumps(sweep.draw(model).to_dict()).count('"type": "line"') for model in (forms, numbers)]
    assert lines[0] == 0 < lines[1]
