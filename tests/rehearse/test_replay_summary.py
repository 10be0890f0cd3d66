"""Summaries of replays with known turn times: pace, the speed at which a side falls behind, answers."""

from __future__ import annotations

from typing import Any

from dbdyno.rehearse.replay.summary import Outcome, outcome_of
from dbdyno.rehearse.replay.turns import Replays, Turn
from dbdyno.rehearse.verdict import Verdict, with_replay

CAPTURE = {"at_once": 4, "transactions": 600}
SAME = Verdict("same", "No regression", "good", "No change of database time is certain", ("Judged: 100 %.",))


def turn(side: str, speed: float, elapsed_s: float, each_ns: int = 1_000_000, **more: Any) -> Turn:
    """A turn of a capture of 10 s with 1,000 round trips."""
    counts = dict.fromkeys(("rows_differ", "fails_now", "failed_then", "fails_otherwise", "broken", "late_ns"), 0)
    elapsed_ns = int(elapsed_s * 1e9)
    report = {"then_ns": 10**10, "elapsed_ns": elapsed_ns, "turns": 1000, "turns_all": 1000, "stopped": False}
    server = {"waits": {"CPU": 3, "IO": 1}, "samples": 2, "missing": {}, "wal_bytes": 500}
    return Turn(side, speed, {**report, **counts, "differing": [], **more}, server, (each_ns, 3 * each_ns))


def said(*turns: Turn) -> Outcome:
    """Return the outcome of these turns."""
    return outcome_of(Replays(turns, CAPTURE), "PostgreSQL 18")


def own_speed(side: str, elapsed_s: float, *each_ns: int) -> list[Turn]:
    """Three turns at the capture's speed."""
    return [turn(side, 1.0, elapsed_s, each) for each in each_ns or (1_000_000, 1_010_000, 1_020_000)]


def test_sides_that_keep_pace_are_named_with_the_highest_speed() -> None:
    found = said(*own_speed("old", 10.1), *own_speed("new", 10.2), turn("old", 2.0, 5.1), turn("new", 2.0, 5.2))
    assert found.sentences[0] == (
        "When all sessions are replayed at once, both sides keep the load's pace at 2 times its speed."
    )
    assert not found.is_worse
    assert [row["kept"] for row in found.model["speeds"]] == [3, 3, 1, 1]


def test_a_new_side_that_falls_behind_at_the_own_speed_is_a_regression() -> None:
    found = said(*own_speed("old", 10.1), *own_speed("new", 14.0), turn("old", 2.0, 5.1))
    assert found.model["falls_behind_at"] == {"old": None, "new": 1.0}
    assert found.sentences[0] == (
        "PostgreSQL 18 falls behind at its own speed (71 of 100 round trips a second, 0.0 s behind); the old side keeps"
        " it."
    )
    verdict = with_replay(SAME, found.sentences, is_worse=found.is_worse)
    assert (verdict.decision, verdict.word, verdict.tone) == ("slower", "Regression", "bad")
    assert verdict.headline.endswith("the old side keeps it; No change of database time is certain")


def test_an_old_side_that_falls_behind_sooner_is_no_regression() -> None:
    found = said(*own_speed("old", 10.1), *own_speed("new", 10.1), turn("old", 2.0, 8.0), turn("new", 2.0, 5.0))
    assert found.sentences[0].startswith("The old side falls behind at 2 times its speed (125 of 200 round trips")
    assert not found.is_worse
    assert with_replay(SAME, found.sentences, is_worse=False).decision == "same"


def test_one_turn_in_time_of_three_keeps_the_pace() -> None:
    late = [turn("new", 1.0, 12.0), turn("new", 1.0, 12.0), turn("new", 1.0, 10.3)]
    assert said(*own_speed("old", 10.0), *late).model["falls_behind_at"]["new"] is None


def test_without_think_times_there_is_no_pace_to_keep() -> None:
    found = said(turn("old", 0.0, 2.0), turn("new", 0.0, 4.0))
    assert [row["asked_per_s"] for row in found.model["speeds"]] == [None, None]
    assert [row["done_per_s"] for row in found.model["speeds"]] == [500, 250]
    assert found.model["falls_behind_at"] == {"old": None, "new": None}


def test_the_time_of_transactions_is_compared_turn_by_turn() -> None:
    slower = said(*own_speed("old", 10.0, 1000, 1010, 1020), *own_speed("new", 10.0, 1300, 1313, 1326))
    assert "the mean time of a transaction is 30 % longer on PostgreSQL 18" in slower.sentences[1]
    same = said(*own_speed("old", 10.0, 1000, 1100, 900), *own_speed("new", 10.0, 900, 1200, 1000))
    assert "the mean time of a transaction shows no certain difference" in same.sentences[1]


def test_failures_and_differing_answers_are_counted_by_side_and_statement() -> None:
    counts = {"rows_differ": 2, "fails_now": 3, "failed_then": 0, "fails_otherwise": 1}
    differing = {"statement": "update t set v = $1", **counts}
    found = said(*own_speed("old", 10.0), turn("new", 1.0, 10.0, fails_now=3, differing=[differing]))
    (row,) = found.model["statements"]
    assert (row["text"], row["new_fails"], row["new_rows"]) == ("update t set v = $1", 4, 2)
    assert found.sentences[-1] == ("On PostgreSQL 18, 3 executions failed that did not fail in the capture, in 1 turn.")


def test_a_replay_that_ended_early_says_why() -> None:
    found = outcome_of(Replays((), CAPTURE, "the server refuses to copy the database: disk full"), "The new side")
    assert found.sentences == ("The replay did not finish: the server refuses to copy the database: disk full.",)
    assert not found.is_worse
