"""The verdict on synthetic measurements: when it is withheld, and what the headline counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from test_decisions import THRESHOLD, measured

from dbdyno.rehearse.decision import Decision, decide, total
from dbdyno.rehearse.job import _name
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement
from dbdyno.rehearse.verdict import Verdict, judge


def judged(items: Sequence[RehearsedStatement]) -> Verdict:
    decisions = decide(items, THRESHOLD)
    return judge(decisions, total(decisions), {}, "PostgreSQL 17", THRESHOLD)


NOISY = (0.7, 1.3, 0.8, 1.35, 0.75, 1.25)
QUIET = (1.0, 1.01, 0.99, 1.0, 1.005, 0.995)


def test_no_regression_is_not_said_where_every_statement_is_unclear() -> None:
    items = [measured(number, NOISY) for number in range(1, 6)]
    assert [one.word for one in decide(items, THRESHOLD)] == ["unclear"] * 5
    verdict = judged(items)
    assert (verdict.decision, verdict.tone) == ("no verdict", "doubt")
    assert "5 of 5 statements are unclear" in verdict.headline
    assert "none of" not in verdict.headline
    assert "--for" in verdict.next


def test_the_headline_says_what_takes_less_time_with_a_change() -> None:
    items = [measured(number, (0.5, 0.51, 0.49, 0.5, 0.505, 0.495)) for number in range(1, 4)]
    decisions = decide(items, THRESHOLD)
    change = _name(None, (None, None), ["set random_page_cost = 1.1"])  # type: ignore[arg-type]
    headline = judge(decisions, total(decisions), {}, change, THRESHOLD).headline
    assert headline.startswith("With set random_page_cost = 1.1, the load takes 50 % less database time")


def test_no_regression_needs_the_unclear_statements_to_weigh_little() -> None:
    quiet = [measured(number, QUIET) for number in range(1, 20)]
    few, many = (judged([*quiet, *(measured(100 + at, NOISY) for at in range(count))]) for count in (1, 10))
    assert few.decision == "same"
    assert "none of the 19 statements that were decided is slower by more than 10 %" in few.headline
    assert "1 of 20 statements is unclear" in few.headline
    assert many.decision == "no verdict"


def test_no_regression_needs_a_total_that_is_certainly_not_slower_by_the_threshold() -> None:
    one = Decision(measured(1, QUIET), "same", 1.05, 1.0, 1.09, 1e6, 1.05e6, 5e6)
    whole = total([one])
    for high, decision in ((1.08, "same"), (1.3, "no verdict")):
        bounded = replace(whole, ratio=1.0, low=0.99, high=high)
        assert judge([one], bounded, {}, "PostgreSQL 17", THRESHOLD).decision == decision


def test_the_headline_counts_answers_that_were_not_compared() -> None:
    items = [measured(number, QUIET) for number in range(1, 4)]
    assert "not compared" not in judged(items).headline
    items[0].undetermined = "LIMIT without ORDER BY"
    assert judged(items).headline.endswith("; 1 answer not compared")
