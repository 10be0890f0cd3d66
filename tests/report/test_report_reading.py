"""The model is validated once, and the error for a damaged one names the place of the damage."""

from __future__ import annotations

import math

import pytest

from dbdyno.base.errors import ReportError
from dbdyno.pages import reading
from dbdyno.report.figures import draw


@pytest.mark.parametrize(
    ("model", "where", "words"),
    [
        ([], "analysis", "expected"[:0] + "expected an analysis as a mapping, found list"),
        ({}, "analysis.schema", "expected schema 1, found None"),
        ({"schema": 2, "kind": "aa"}, "analysis.schema", "expected schema 1, found 2"),
        ({"schema": 1, "kind": "x"}, "analysis.kind", "expected one of experiment, aa, curve"),
    ],
)
def test_what_is_no_analysis_is_refused(model, where, words):
    with pytest.raises(ReportError) as caught:
        reading.read(model)
    assert caught.value.where == where
    assert words in caught.value.message


def test_reading_twice_changes_nothing_and_leaves_the_given_model_alone(hostile):
    hostile["run"]["duration_s"] = math.nan
    once = reading.read(hostile)
    assert reading.read(once) == once
    assert once["run"]["duration_s"] is None
    assert math.isnan(hostile["run"]["duration_s"])


@pytest.mark.parametrize(
    ("figure", "key", "value", "words"),
    [
        ("tail", "elapsed_ns", [1.0], "values like its neighbours, found 1"),
        ("tail", "elapsed_ns", None, "expected an array, found NoneType"),
        ("distribution", "share", "much", "expected an array, found str"),
        ("blocks", "ratio", ["fast"] * 20, "expected numbers, found 'fast'"),
    ],
)
def test_a_torn_figure_is_named_by_place(experiment, figure, key, value, words):
    experiment["figures"][figure][0][key] = value
    with pytest.raises(ReportError) as caught:
        draw(figure, experiment)
    assert caught.value.where == f"analysis.figures.{figure}[0].{key}"
    assert words in caught.value.message
    assert caught.value.next_step


def test_a_list_in_the_place_of_something_else_is_named_by_place(experiment):
    experiment["figures"]["waits"] = {"commit": 1}
    with pytest.raises(ReportError, match="list of mappings") as caught:
        draw("waits", experiment)
    assert caught.value.where == "analysis.figures.waits"


def test_arms_of_one_name_are_told_apart(experiment):
    for arm in experiment["arms"]:
        arm["name"] = "as it is"
    assert list(reading.arm_names(experiment).values()) == ["as it is", "as it is (2)"]


def test_an_arm_that_only_a_figure_mentions_has_a_name(experiment):
    experiment["figures"]["tail"].append({"arm": 7, "exceed_share": [1], "elapsed_ns": [1]})
    assert reading.arm_names(experiment)[7] == "arm 7"
