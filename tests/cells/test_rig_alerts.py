"""Thresholds of a modelled cell, and the alerts that they cause."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from rig_help import cell, said

from dbdyno.cells.documents import read_any
from dbdyno_rig.alerts import Alerts, Threshold
from dbdyno_rig.rack import Row, Sample
from fresh_dice import fresh_dice

MINUTE_NS = 60 * 10**9
OVER = Threshold("M", ">", warning=10, critical=100)


def row(value: float, item: str = "X", name: str = "M") -> Row:
    return ("CELL", item, name, value, "", "gauge")


def seen(threshold: Threshold, values: list[float]) -> Alerts:
    """Return the alerts that these values, one minute apart, cause."""
    alerts = Alerts()
    alerts.set_threshold(threshold)
    for minute, number in enumerate(values):
        alerts.check_sample(Sample(minute * MINUTE_NS, [row(number)]))
    return alerts


def told(alerts: Alerts) -> list[tuple[str, str, int]]:
    return [(one.name, one.severity, one.begin_ns // MINUTE_NS) for one in alerts.entries()]


def test_an_alert_is_a_sequence_of_its_severities():
    alerts = seen(OVER, [5, 50, 500, 50, 5, 5, 200])
    assert told(alerts) == [
        ("1_1", "warning", 1),
        ("1_2", "critical", 2),
        ("1_3", "warning", 3),
        ("1_4", "clear", 4),
        ("2_1", "critical", 6),
    ]
    ends = [one.end_ns and one.end_ns // MINUTE_NS for one in alerts.entries()]
    assert ends == [2, 3, 4, 4, None]
    assert {one.first_ns // MINUTE_NS for one in alerts.entries()} == {1, 6}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([50, 5, 50, 5], []),
        ([50, 50], [("1_1", "warning", 1)]),
        ([50, 500], [("1_1", "warning", 1)]),
        ([500, 500, 50], [("1_1", "critical", 1), ("1_2", "warning", 2)]),
        ([50, 50, 5, 50], [("1_1", "warning", 1), ("1_2", "clear", 2)]),
    ],
)
def test_a_limit_is_crossed_so_many_times_in_a_row(values: list[float], expected: list[tuple[str, str, int]]):
    assert told(seen(replace(OVER, occurrences=2), values)) == expected


def test_values_are_averaged_before_they_are_compared():
    # The published example: of 0, 30, 0, 5, 15 the mean of five observations is 10.
    values = [0.0, 30.0, 0.0, 5.0, 15.0]
    at_least = Threshold("M", ">=", warning=10, observation=5)
    assert told(seen(at_least, values)) == [("1_1", "warning", 4)]
    assert told(seen(replace(at_least, warning=10.1), values)) == []


@pytest.mark.parametrize(
    ("comparison", "value", "crosses"),
    [
        ("<", 9, True),
        ("<", 10, False),
        ("<=", 10, True),
        ("=", 10, True),
        ("=", 9, False),
        (">=", 10, True),
        (">", 10, False),
        (">", 11, True),
    ],
)
def test_each_comparison(comparison: str, value: float, crosses: bool):
    alerts = seen(Threshold("M", comparison, warning=10), [value])
    assert bool(alerts.entries()) == crosses


def test_a_threshold_is_of_one_object_or_of_all():
    rows = [row(50, "X"), row(50, "Y"), row(50, "X", "OTHER")]
    for name, expected in (("m", {"X", "Y"}), ("m.y", {"Y"}), ("M.Z", set())):
        alerts = Alerts()
        alerts.set_threshold(replace(OVER, name=name))
        alerts.check_sample(Sample(0, rows))
        assert {one.row[1] for one in alerts.entries()} == expected


def test_other_limits_and_the_end_of_a_threshold_end_its_alerts():
    for change in (lambda a: a.drop_thresholds(["M"]), lambda a: a.set_threshold(replace(OVER, warning=60))):
        alerts = seen(OVER, [50])
        change(alerts)
        assert told(alerts) == [("1_1", "warning", 0), ("1_2", "clear", 0)]


def test_what_is_over_is_forgotten_and_what_lasts_is_kept():
    alerts = seen(OVER, [50, 5, 50])
    alerts.delete_ended()
    assert told(alerts) == [("2_1", "warning", 2)]


def test_severities_alternate_whatever_the_values():
    dice = fresh_dice()
    for _ in range(200):
        limits = replace(OVER, occurrences=dice.randint(1, 3), observation=dice.randint(1, 3))
        values = [dice.choice([1.0, 50.0, 500.0]) for _ in range(dice.randint(0, 30))]
        entries = seen(limits, values).entries()
        by_sequence: dict[int, list[str]] = {}
        for one in entries:
            by_sequence.setdefault(one.sequence, []).append(one.severity)
        for severities in by_sequence.values():
            assert "clear" not in severities[:-1]
            assert all(a != b for a, b in itertools.pairwise(severities))
        lasting = [one for one in entries if one.end_ns is None]
        assert len(lasting) <= 1


def test_a_user_creates_a_threshold_and_reads_its_alerts():
    asked = cell(seconds=1)
    assert said(asked, "list alerthistory") == ""
    said(asked, "create threshold FL_RQ_W.FLASHLOG comparison='>', warning=10, critical=1000000")
    asked.rack.advance(61 * 10**9)
    (line,) = said(asked, "list alerthistory").splitlines()
    name, begin, severity, message = (part.strip() for part in line.split("\t")[1:])
    assert (name, severity) == ("1_1", "warning")
    assert message.startswith('"FL_RQ_W of FLASHLOG has crossed its warning threshold')
    state = "list metriccurrent FL_RQ_W attributes alertState, collectionTime"
    assert said(asked, state).split() == ["warning", begin]
    assert said(asked, "list metriccurrent where alertState != normal attributes name").split() == ["FL_RQ_W"]
    said(asked, "alter threshold FL_RQ_W.FLASHLOG warning=2000000, critical=3000000")
    asked.rack.advance(61 * 10**9)
    detail = read_any(said(asked, "list alerthistory detail")).details
    assert [one["severity"] for one in detail] == ["warning", "clear"]
    assert {one["alertSequenceID"] for one in detail} == {"1"}
    assert detail[0]["endTime"] == detail[1]["beginTime"]
    said(asked, "alter alerthistory 1_1 examinedBy=anna")
    assert said(asked, "list alerthistory 1_1 attributes examinedBy").strip() == "anna"
    assert said(asked, "list alerthistory where ageInMinutes < 100 and severity = clear").count("1_2")
    said(asked, "drop alerthistory all")
    said(asked, "drop threshold fl_rq_w.flashlog")
    assert said(asked, "list alerthistory") == said(asked, "list threshold") == ""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("create threshold FL_RQ_W", "CELL-01504"),
        ("create threshold FL_RQ_W warning=1", "CELL-01504"),
        ("create threshold FL_RQ_W comparison='>'", "CELL-01504"),
        ("create threshold FL_RQ_W comparison='!', warning=1", "CELL-01504"),
        ("create threshold FL_RQ_W comparison='>', warning=much", "CELL-01504"),
        ("create threshold FL_RQ_W comparison='>', warning=1, occurrences=0", "CELL-01504"),
        ("create threshold FL_RQ_W comparison='>', warning=1, colour=2", "CELL-01504"),
        ("create threshold NONE comparison='>', warning=1", "CELL-02007"),
        ("alter threshold NONE warning=1", "CELL-02007"),
        ("drop threshold NONE", "CELL-02007"),
        ("alter alerthistory 9_9 examinedBy=anna", "CELL-02007"),
        ("drop alerthistory 1_1", "CELL-01504"),
    ],
)
def test_what_is_no_threshold_is_refused(text: str, error: str):
    output, code = cell().answer(text)
    assert (code, output.strip()[:10]) == (1, error)


def test_a_threshold_that_exists_is_altered_and_not_created():
    asked = cell()
    said(asked, "create threshold FL_RQ_W comparison='>', warning=1")
    assert "exists" in asked.answer("create threshold fl_rq_w comparison='<', warning=1")[0]
    said(asked, "alter threshold all occurrences=3")
    (shown,) = read_any(said(asked, "list threshold detail")).details
    assert {**shown, "critical": ""} == {
        "name": "FL_RQ_W",
        "comparison": ">",
        "critical": "",
        "observation": "1",
        "occurrences": "3",
        "warning": "1",
    }
