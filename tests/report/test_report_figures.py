"""Figures: drawn if there are data, valid Vega-Lite, correct at the edges, in colours with dark-mode variants."""

from __future__ import annotations

import re
from types import SimpleNamespace

import jsonschema
import pytest
import report_model_runs
import report_models
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dbdyno.base.errors import ReportError
from dbdyno.report import figures, svg
from dbdyno.report.figures import axes, theme
from vega_lite import accepted

NAMES = [figure.name for figure in figures.ORDER]
SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
HEX = re.compile(r'(?:fill|stroke)="(#[0-9a-fA-F]+)"')


def inline(chart) -> str:
    return svg.inline(chart, "t", "label")


def test_the_figures_come_in_the_order_of_the_report(experiment, curve):
    assert [figure.name for figure, _ in figures.draw_all(experiment)] == [
        "distribution",
        "quantile_ratio",
        "tail",
        "blocks",
        "heatmap",
        "waits",
        "over_time",
    ]
    assert next(figures.draw_all(curve))[0].name == "curve"


@pytest.mark.parametrize("look", [figures.WIDE, figures.NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", NAMES)
def test_each_figure_is_valid_vega_lite(name, look, experiment, curve, correlation):
    own = {
        "curve": lambda: curve,
        "correlation": lambda: correlation,
        "contributions": report_models.traces,
        "sweep": report_model_runs.sweep,
    }
    accepted(figures.draw(name, own[name]() if name in own else experiment, look))


def test_a_chart_that_vega_lite_would_not_take_is_refused():
    wrong = SimpleNamespace(to_dict=lambda validate: {"data": {"values": []}, "mark": "no such mark", "encoding": {}})
    with pytest.raises(jsonschema.ValidationError):
        accepted(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_without_data_is_none(name, experiment):
    experiment["figures"] = {}
    assert figures.draw(name, experiment) is None
    experiment["figures"] = None
    assert figures.draw(name, experiment) is None


def test_every_model_is_drawn_in_colours_that_have_a_dark_partner(any_page):
    model, page = any_page
    pictures = SVG.findall(page)
    assert len(pictures) >= sum(1 for _ in figures.draw_all(model))
    for drawn in pictures:
        assert "NaN" not in drawn
        assert {colour for colour in HEX.findall(drawn) if colour not in theme.DARK} == set()


def test_titles_say_what_to_see_and_how_to_read_it():
    for figure in figures.ORDER:
        assert figure.how_to_read.endswith(".")
        assert 40 < len(figure.how_to_read) < 260


DEGENERATE = {
    "over_time": [{"measure": "redo", "unit": "bytes/s", "arm": None, "at_s": [0], "seconds": [0], "value": [1]}],
    "distribution": [{"arm": 0, "low_ns": [1000], "high_ns": [1000], "share": [1.0]}],
    "quantile_ratio": [{"arm": 1, "quantile": [0.5], "ratio": [1.0], "low": [None], "high": None}],
    "tail": [{"arm": 0, "exceed_share": [1.0], "elapsed_ns": [5]}],
    "blocks": [{"arm": 1, "metric": "?", "block": [0], "at_s": [0], "ratio": [1], "marked": [""]}],
    "heatmap": [{"arm": 0, "at_s": [0], "width_s": None, "low_ns": [9], "high_ns": [9], "count": [1]}],
    "waits": [{"arm": 0, "class": None, "event": None, "samples": 1, "share": 1.0}],
    "curve": {"points": {"redo_bytes": [0], "elapsed_ns": [0]}},
    "sweep": {"curves": [{"name": "", "points": [{"x": 1, "per_s": 5.0}]}]},
    "contributions": [{"name": "x", "base_ns": 0, "value_ns": 5, "difference_ns": 5}],
    "correlation": {"hit_ratio": [1.0] * 3, "mean_ns": [5.0] * 3, "label": ["a", "b", "c"]},
}


@pytest.mark.parametrize("name", NAMES)
def test_one_single_value_is_drawn(name):
    model = {"schema": 1, "kind": "curve", "figures": {name: DEGENERATE[name]}}
    drawn = inline(figures.draw(name, model))
    assert "NaN" not in drawn
    assert "Infinity" not in drawn


def test_equal_ratios_without_a_threshold_have_an_axis(experiment):
    del experiment["run"]["threshold"]
    entry = experiment["figures"]["quantile_ratio"][0]
    for key in ("ratio", "low", "high"):
        entry[key] = [1.0] * len(entry["quantile"])
    assert "0\u202f%" in inline(figures.draw("quantile_ratio", experiment))


def test_slow_commits_above_the_frame_are_counted_not_dropped(curve):
    drawn = inline(figures.draw("curve", curve))
    assert re.search(r"▲ \d+ slower commits above the frame, up to", drawn)


def test_the_period_is_marked_only_where_it_was_found(curve):
    assert "stroke-dasharray" in inline(figures.draw("curve", curve))
    curve["figures"]["curve"]["found"] = False
    assert "stroke-dasharray" not in inline(figures.draw("curve", curve))


def test_a_marked_block_says_why(experiment):
    assert "reconnect" in inline(figures.draw("blocks", experiment))


def test_the_band_of_what_does_not_matter_is_drawn_only_where_it_is_known(experiment):
    with_band = inline(figures.draw("quantile_ratio", experiment))
    del experiment["run"]["threshold"]
    assert theme.BAND in with_band
    assert theme.BAND not in inline(figures.draw("quantile_ratio", experiment))


def test_figures_are_written_whole_and_named(tmp_path, experiment):
    experiment["figures"] = {name: experiment["figures"][name] for name in ("distribution", "quantile_ratio")}
    written = figures.write_figures(experiment, tmp_path / "new" / "folder")
    assert [path.name for path in written] == [
        "distribution.png",
        "distribution.svg",
        "quantile_ratio.png",
        "quantile_ratio.svg",
    ]
    assert sorted(path.name for path in written) == sorted(
        path.name for path in (tmp_path / "new" / "folder").iterdir()
    )
    for path in written:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG" if path.suffix == ".png" else b"<svg")


def test_only_the_formats_asked_for_are_written(tmp_path, curve):
    written = figures.write_figures(curve, tmp_path, formats=["svg"])
    assert {path.suffix for path in written} == {".svg"}


def test_an_unknown_format_and_an_unknown_figure_are_refused(tmp_path, experiment):
    with pytest.raises(ReportError, match="expected one of png, svg, found 'gif'"):
        figures.write_figures(experiment, tmp_path, formats=["gif"])
    with pytest.raises(ReportError, match="found 'pie'"):
        figures.draw("pie", experiment)


def test_a_directory_that_cannot_be_written_is_an_error_with_its_place(tmp_path, experiment):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError) as caught:
        figures.write_figures(experiment, tmp_path / "file", formats=["svg"])
    assert str(tmp_path) in str(caught.value)
    assert caught.value.next_step


POSITIVE = st.floats(1e-3, 1e15)


@pytest.mark.parametrize(("low", "high"), [(5000, 9000), (1000, 3000), (92e-6, 99e-6), (800, 4000), (1, 9.9)])
def test_a_logarithmic_axis_of_less_than_a_decade_has_at_least_three_labels(low, high):
    assert 3 <= len(axes.log_ticks(low, high, 7)) <= 7


@example(0.001, 0.0010000000000000002, 4)
@given(POSITIVE, POSITIVE, st.integers(3, 14))
def test_log_ticks_lie_within_and_are_few_and_rise(low, high, most):
    assume(low < high)
    ticks = axes.log_ticks(low, high, most)
    assert ticks == sorted(set(ticks))
    assert 1 <= len(ticks) <= most
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.integers(2, 12), st.sampled_from([2, 10]))
def test_linear_ticks_lie_within_and_are_few(low, length, most, base):
    ticks = axes.linear_ticks(low, low + length, most, base)
    slack = length * 1e-6
    assert len(ticks) <= most + 1
    assert all(low - slack <= tick <= low + length + slack for tick in ticks)


@pytest.mark.parametrize(
    ("label", "value", "shown"),
    [
        (axes.duration_label, 50_000, "50 µs"),
        (axes.duration_label, 1_500_000_000, "1.5 s"),
        (axes.duration_label, 0, "0"),
        (axes.size_label, 1.5 * 2**20, "1.5 MiB"),
        (axes.change_label, 1.05, "+5 %"),
        (axes.change_label, 0.975, "−2.5 %"),
        (axes.factor_label, 0.5, "×0.5"),
        (axes.percent_label, 0.025, "2.5 %"),
        (axes.seconds_label, 90, "1:30 min"),
        (axes.seconds_label, 3900, "1 h 05"),
        (axes.seconds_label, 30, "30 s"),
    ],
)
def test_tick_labels_speak_the_readers_units(label, value, shown):
    assert label(value).replace("\u202f", " ") == shown


def test_every_colour_has_a_dark_partner_and_no_two_arms_share_one():
    assert len(set(theme.OTHERS) | {theme.BASELINE}) == len(theme.OTHERS) + 1
    assert theme.arm_colours(3, 1)[1] == theme.BASELINE
    assert len(theme.arm_colours(20, 0)) == 20


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours as WCAG 2.2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((light(one), light(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("colour", [theme.BASELINE, *theme.OTHERS])
def test_lines_stand_out_from_the_paper_in_both_modes(colour):
    assert contrast(colour, "#ffffff") >= 3
    assert contrast(theme.DARK[colour], theme.DARK[theme.PAPER]) >= 3


@pytest.mark.parametrize("colour", [theme.INK, theme.SOFT])
def test_words_can_be_read_in_both_modes(colour):
    assert contrast(colour, "#ffffff") >= 4.5
    assert contrast(theme.DARK[colour], theme.DARK[theme.PAPER]) >= 4.5


def test_tips_are_on_marks_and_short(experiment, curve):
    for model in (experiment, curve):
        for _, chart in figures.draw_all(model):
            tips = re.findall('data-tip="([^"]*)"', inline(chart))
            assert all(": " in tip and len(tip) < 90 for tip in tips)
            assert not any("axis" in tip or "legend" in tip for tip in tips)
