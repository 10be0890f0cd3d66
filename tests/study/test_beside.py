"""An engine compared with a model: the verdict uses ratios within each run, never times of one against the other."""

from __future__ import annotations

from dbdyno.study.analysis.arm_comparison import verdict_of
from dbdyno.study.analysis.contract.parts import ArmPairRow, ArmSide


def side(ratio: float | None, low: float = 0, high: float = 0) -> ArmSide:
    made: ArmSide = {"arm": "a" if ratio is None else f"x{ratio:g}", "mean_ns": 1.0, "ratio": ratio}
    return made if ratio is None else {**made, "base": "a", "low": low, "high": high}


def row(one: ArmSide, two: ArmSide) -> ArmPairRow:
    return {"sides": [one, two]}


def test_arms_agree_where_both_runs_have_the_same_direction():
    rows = [
        row(side(None), side(None)),
        row(side(1.6, 1.5, 1.7), side(4.7, 4.6, 4.8)),
        row(side(0.5, 0.4, 0.6), side(2.0, 1.9, 2.1)),
        row(side(1.1, 0.9, 1.3), side(1.0, 1.0, 1.0)),
    ]
    found = verdict_of(rows, ("PostgreSQL 15", "model:m"))
    assert found["decision"] == "measured"
    assert found["headline"].startswith("PostgreSQL 15 and model:m agree on 2 of 3 arms")
    assert found["sentences"][1] == (
        "x0.5 against a: PostgreSQL 15 faster (0.5 times the mean); model:m slower (2 times the mean)"
    )
    assert "no difference (1 times the mean)" in found["sentences"][2]


def test_one_arm_is_not_called_arms():
    rows = [row(side(None), side(None)), row(side(2, 1.5, 3), side(2, 1.5, 3))]
    assert "agree on 1 of 1 arm (" in verdict_of(rows, ("a", "b"))["headline"]
