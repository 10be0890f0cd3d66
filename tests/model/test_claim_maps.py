"""Maps of claims: a quantity as a function of what its source does not specify, with the published value."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from small_bench import SmallBench

from dbdyno.base.errors import ModelError
from dbdyno.cli.main import cli
from dbdyno.model.claims import FILES, MAPS, group_commit, measure_map
from dbdyno.model.claims.map import Map, _crossings, draw_map


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["model", "map", *arguments])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(group_commit.MAP, levels=(100, 400, 1_600), transactions=60)
    monkeypatch.setattr(group_commit, "MAP", few)


def test_a_curve_meets_a_value_between_two_points_on_logarithmic_scales():
    points = [{"x": x, "value": 1_000 / x} for x in (10, 40, 1_000)]
    assert list(_crossings(points, 50.0)) == pytest.approx([20.0])
    assert list(_crossings(points, 5.0)) == pytest.approx([200.0])
    assert list(_crossings(points, 200.0)) == []


@pytest.mark.usefixtures("small")
def test_commits_a_write_fall_with_the_cpu_and_meet_what_was_published():
    page = measure_map("n12", replications=2, seed=1)
    for curve in ("1 log member", "2 log members"):
        values = [point["value"] for point in page["points"] if point["curve"] == curve]
        # Two crowds of ten that take turns; then fewer the longer a transaction computes.
        assert values[0] == pytest.approx(10, rel=0.1) and values == sorted(values, reverse=True) and values[-1] < 3
    assert {crossing["curve"] for crossing in page["crossings"]} == {"1 log member", "2 log members"}
    assert all(400 < crossing["x"] < 1_600 for crossing in page["crossings"])
    assert page["sentences"][1].startswith("1 log member: in the band at 400; the source at ")


@pytest.mark.usefixtures("small")
def test_the_page_has_the_picture_and_each_point(tmp_path: Path):
    done = run("N12", "--replications", "2", "-o", str(tmp_path / "n12.html"))
    assert done.exit_code == 0, done.output
    page = (tmp_path / "n12.html").read_text()
    assert "The claim over the values that its source does not state" in page and page.count("<svg") >= 2
    rows = run("N12", "--replications", "2", "--format", "csv").output.splitlines()
    assert rows[0] == "curve,x,value,low,high" and len(rows) == 7
    shown = json.loads(run("N12", "--replications", "2", "--format", "json").output)
    assert shown["published"] == [{"name": "the source", "value": 4.8}]


def test_each_map_runs_at_its_ends_and_names_what_was_published():
    for name in MAPS:
        of: Map = importlib.import_module(f"dbdyno.model.claims.{FILES[name]}").MAP
        assert of.published and of.band != (None, None)
        ends = replace(of, levels=(of.levels[0],), curves=of.curves[:1], transactions=1, warmup=min(of.warmup, 1))
        (point,) = draw_map(name, "made", "made", ends, SmallBench(2, 1, lambda: None))["points"]
        assert (point["curve"], point["x"]) == (of.curves[0], of.levels[0])


def test_a_claim_without_a_map_is_told_with_those_that_have_one():
    with pytest.raises(ModelError, match="no map of a claim named 'N1'"):
        measure_map("N1")
    with pytest.raises(ModelError, match="2 replications"):
        measure_map("N12", replications=1)
    assert isinstance(run("N99").exception, ModelError)
