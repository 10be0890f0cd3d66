"""Page parts that only runs in virtual time have: devices, the race, sweeps, two curves."""

from __future__ import annotations

import re

import pytest
import rendered
import report_model_runs
import report_models

from dbdyno.report import figures, svg
from dbdyno.report.flat import rows
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from soaked import first


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.split("<main>")[1]).split())


def test_the_race_is_told_with_its_share_and_interval():
    page = words(rendered.page(report_model_runs.flash_log()))
    for expected in ("551 342", "19 190", "3.48 %", "3.41 % to 3.55 %"):
        assert expected in page
    text = render_text(report_model_runs.flash_log(), width=110, color=False)
    assert "3.48 %" in " ".join(text.split())


def test_databases_on_one_storage_stand_side_by_side():
    page = words(rendered.page(report_model_runs.flash_log()))
    for expected in ("Databases side by side", "69.6 %", "68.3 % to 70.9 %", "28.8 ms"):
        assert expected in page
    text = " ".join(render_text(report_model_runs.flash_log(), width=110, color=False).split())
    assert "flash log on TEST 302.1" in text


def test_a_station_that_stands_for_several_shows_the_busiest():
    page = words(rendered.page(report_model_runs.flash_log()))
    assert "cell.disk × 36" in page
    assert "cores, 24 at once" in page
    assert "81 %" in page


def test_littles_law_is_told_and_a_broken_one_is_loud():
    model = report_model_runs.flash_log()
    assert "holds exactly at each station in each block: 60 checks" in words(render_html(model))
    model["devices"][0]["little_broken"] = 2
    assert "did not hold in 2 of 60 checks" in words(render_html(model))
    assert "did not hold in 2 of 60 checks" in render_text(model, width=110, color=False)


@pytest.mark.soak
def test_a_live_run_has_neither_devices_nor_race(experiment):
    page = render_html(experiment)
    assert 'id="devices"' not in page
    assert 'id="race"' not in page
    assert 'id="databases"' not in page


def test_the_tail_of_two_arms_is_told_on_page_and_terminal():
    told = "Of the 10 000 longest in both together, 2100 are from flash log on"
    assert told in words(rendered.page(report_model_runs.flash_log()))
    text = " ".join(render_text(report_model_runs.flash_log(), width=110, color=False).split())
    assert told in text


@pytest.mark.parametrize(("apart", "frames"), [(1.2, 1), (30.0, 2)])
def test_curves_share_a_frame_unless_one_would_lie_flat(apart, frames):
    model = report_model_runs.two_curves(apart)
    spec = figures.draw("curve", model).to_dict(validate=False)
    assert len(spec.get("vconcat", [spec])) == frames
    drawn = svg.inline(figures.draw("curve", model), "t", "label")
    assert "model:san (ab12)" in drawn
    page = render_html(model)
    assert page.count("chosen</span>") == 2


def test_flat_rows_of_two_curves_name_the_arm():
    found = rows(report_model_runs.two_curves())
    assert {row["arm"] for row in found} == {"commit", "model:san (ab12)"}


def test_flat_rows_of_a_sweep_are_its_points():
    found = rows(report_model_runs.sweep())
    assert len(found) == 36
    assert found[0]["curve"] == "stripe_kb 32, sd_max_throttle 1"
    assert found[0]["x"] == 1.0


@pytest.mark.parametrize("settings", first(20, 1, 6, count=2))
def test_a_sweep_draws_each_curve_in_a_look_of_its_own(settings):
    spec = figures.draw("sweep", report_model_runs.sweep(settings)).to_dict(validate=True)
    line = spec["vconcat"][0]["layer"][0]["encoding"]
    dashes = [str(dash) for dash in line["strokeDash"]["scale"]["range"]]
    looks = list(zip(line["color"]["scale"]["range"], dashes, strict=True))
    assert len(set(looks)) == settings


def test_a_sweep_without_numbers_is_no_figure():
    model = report_models.hollow("sweep")
    model["figures"]["sweep"] = {"curves": [{"name": "a", "points": [{"x": 0, "per_s": None}]}]}
    assert figures.draw("sweep", model) is None


def test_one_bin_of_few_commits_does_not_flatten_the_curve():
    model = report_models.curve()
    before = figures.draw("curve", model).to_dict(validate=False)
    model["figures"]["curve"]["bins"][7]["high_ns"] = 3_400_000_000.0
    after = figures.draw("curve", model).to_dict(validate=False)

    def top(spec):
        return spec["layer"][-1]["encoding"]["y"].get("scale") or next(
            layer["encoding"]["y"]["scale"] for layer in spec["layer"] if "scale" in layer["encoding"].get("y", {})
        )

    assert top(after)["domain"][1] < 1.5 * top(before)["domain"][1]
