"""The verdict on two periods is about what users wait for: the same work, blocked time, failed work, added work."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from made_store import MadeServer

from dbdyno.judge.blocked_time import BlockedTime
from dbdyno.judge.same_work import CostIndex, SameWork
from dbdyno.judge.snapshots import compare
from dbdyno.judge.verdict import Facts, _fold, judge
from dbdyno.snapshot.causes import Cause, ReportedCause
from dbdyno.snapshot.reading.periods import period

MEANS_MS = {1: 0.1, 2: 0.4, 3: 2.0, 4: 0.05, 5: 8.0}
CALLS = {1: 3000, 2: 1200, 3: 300, 4: 3000, 5: 12}


class Loaded(MadeServer):
    """A server with five statements at given rates and mean times; `noise` is the spread of a minute's mean times."""

    def __init__(self, folder: Path, seed: int, noise: float = 0.02) -> None:
        super().__init__(folder)
        print("seed", seed)
        self.dice = random.Random(seed)
        self.noise = noise
        self.failing = 0.0

    def stretch(self, count: int, *, load: float = 1.0, slower: dict[int, float] | None = None, **more: int) -> str:
        """Add a period. `slower`: factor of the time of each statement; `more`: calls of additional statements."""
        first = self.minute(load, slower or {}, more)
        for _ in range(count):
            last = self.minute(load, slower or {}, more)
        return f"snap:{first}..{last}"

    def minute(self, load: float, slower: dict[int, float], more: dict[str, int]) -> int:
        """Add one sub-interval; return its snapshot's number."""
        calls = CALLS | {int(name.removeprefix("s")): number for name, number in more.items()}
        for statement, number in calls.items():
            drawn = max(round(self.dice.gauss(number * load, math.sqrt(number * load))), 0)
            mean = MEANS_MS.get(statement, 1.0) * slower.get(statement, 1.0) * self.dice.lognormvariate(0, self.noise)
            self.call(statement, drawn, drawn * mean)
        self.database["xact_rollback"] += round(600 * self.failing)
        return self.step().number


@pytest.fixture
def server(tmp_path: Path) -> Loaded:
    return Loaded(tmp_path / "snaps", 20261127)


def verdict(server: Loaded, one: str, other: str, **more: Any) -> dict[str, Any]:
    made = compare(server.store, period(server.store, one), period(server.store, other), **more)["verdict"]
    print(made)
    return made


def test_the_same_load_twice_has_no_change_and_says_how_small(server: Loaded):
    found = verdict(server, server.stretch(8), server.stretch(8))
    assert found["word"] == "ok"
    assert found["title"].startswith("No change larger than 2 % in database time for the same work (95 % CI −")


def test_twice_the_load_of_the_same_work_is_no_change(server: Loaded):
    found = verdict(server, server.stretch(8), server.stretch(8, load=2.0))
    assert found["word"] == "ok"
    assert found["sentences"][-1] == "Load: 126 statements a second, then 250."


def test_one_statement_that_takes_longer_counts_by_its_share(server: Loaded):
    """Statement 3 has 35 % of the time: twice as long makes the same work 1.35 times as dear."""
    found = verdict(server, server.stretch(8), server.stretch(8, slower={3: 2.0}))
    assert found["word"] == "worse"
    assert found["title"].startswith("Slower: select 3 from t (3) takes longer (")
    assert "The same statements take 1.3" in " ".join(found["sentences"])


def test_the_same_work_is_weighed_by_the_first_periods_calls(server: Loaded):
    """More calls of a dear statement, fewer of cheap ones: the mean of all is larger, and nothing is slower."""
    before = server.stretch(8)
    found = verdict(server, before, server.stretch(8, s5=16, s4=2000))
    assert found["word"] == "ok", "the mix moved"


def test_less_time_for_the_same_work_is_better(server: Loaded):
    found = verdict(server, server.stretch(8), server.stretch(8, slower=dict.fromkeys(CALLS, 0.7)))
    assert found["word"] == "better"
    assert found["title"].startswith("Faster: the same statements take 30.6 % less time (95 % CI −31")


def test_a_release_with_one_query_more_per_row_is_more_work_and_never_better(server: Loaded):
    """4,000 more statements a second were "better: transactions, blocks read, mean time of a statement"."""
    found = verdict(server, server.stretch(8), server.stretch(8, s9=240_000))
    assert found["word"] == "worse"
    assert found["title"].startswith("More work: new statement: select 9 from t")
    assert "It is called 4,000 times a second, 0 before" in found["sentences"][0]


def test_a_known_statement_called_out_of_proportion_is_more_work(server: Loaded):
    found = verdict(server, server.stretch(8), server.stretch(8, s2=36_000))
    assert found["word"] == "worse" and found["title"].startswith("More work: more calls of select 2 from t")


def test_a_rare_statement_that_the_first_period_did_not_meet_is_no_news(server: Loaded):
    before = server.stretch(8)
    server.call(77, 1, 4000.0)
    assert verdict(server, before, server.stretch(8))["word"] == "ok"


def test_a_statement_that_another_replaced_at_the_same_cost_is_no_added_work(server: Loaded):
    before = server.stretch(8, s20=600)
    assert verdict(server, before, server.stretch(8, s21=600))["word"] == "ok"


def test_transactions_that_fail_are_worse(server: Loaded):
    before = server.stretch(8)
    server.failing = 0.2
    found = verdict(server, before, server.stretch(8))
    assert found["word"] == "worse"
    assert found["title"] == "More work fails: 16.7% of transactions are rolled back, 0.0% before"


def test_too_few_or_too_unlike_sub_intervals_are_no_all_clear(tmp_path: Path):
    few = Loaded(tmp_path / "few", 1)
    found = verdict(few, few.stretch(3), few.stretch(3))
    assert found["word"] == "cannot tell" and "3 and 3 sub-intervals are too few" in found["title"]
    unlike = Loaded(tmp_path / "unlike", 2, noise=0.8)
    found = verdict(unlike, unlike.stretch(8), unlike.stretch(8))
    assert found["word"] == "cannot tell"
    assert found["title"].startswith("Cannot tell: database time for the same work may have changed by −")
    assert "sub-intervals in each period are needed" in found["sentences"][0]


def test_a_metric_that_is_small_decides_nothing(server: Loaded):
    """ "better: blocks read", of 0.6 blocks a second in both periods."""
    before = server.stretch(8)
    for _ in range(8):
        server.database["blks_read"] += 4000
    found = verdict(server, before, server.stretch(8))
    assert found["word"] == "ok"


STANDBY = ReportedCause(Cause("commits wait for a standby", "1 session", code="standby"), None)
STORM = ReportedCause(Cause("many more sessions begin", "sessions begun 4 → 131 a second", code="sessions"), None)


def facts(high: float = 1.02, commits: BlockedTime | None = None, rate: float = 100.0, *causes: ReportedCause) -> Facts:
    same = SameWork(CostIndex(1.0, 1 / high, high, 0.9), None, 1.0, (8, 8))
    return Facts(
        (8, 8), same, None, None, None, causes, (500.0, 500.0), commits=commits, commits_a_second=(100.0, rate)
    )


def test_commits_that_wait_longer_are_slower_although_no_statement_is():
    """A commit is in no statement's time: a standby that held up each was "no change larger than 2 %"."""
    waiting = BlockedTime(0.1, 1.4, (1.0, 2.4), certain=True)
    found = judge(facts(1.02, waiting, 100.0, STANDBY), 0.05)
    assert (found.word, found.title) == ("worse", "Slower: commits wait for a standby (93% of +1.4 s a second)")
    assert found.next.startswith("Find what delays its replay")


def test_commits_that_wait_for_the_log_come_before_a_statement_that_takes_microseconds_longer():
    """The headline was "insert into journal takes longer (+340 µs a second)", above +396 ms of waits for the log."""
    insert = ReportedCause(Cause("slower: insert into journal", code="slower", direct=False), 0.99)
    syncs = ReportedCause(Cause("syncs of the WAL became slow", "0.01 → 0.4 on average", code="device"), None)
    work = SameWork(CostIndex(1.12, 1.06, 1.2, 0.001), None, 1.0, (8, 8))
    waits = BlockedTime(0.015, 0.4, (0.02, 0.42), certain=True)

    def title(spent_ms: tuple[float, float], *causes: ReportedCause) -> str:
        two = Facts((8, 8), work, causes=causes, spent_ms=spent_ms, commits=waits, commits_a_second=(100.0, 100.0))
        return judge(two, 0.05).title

    assert title((2.0, 2.3), syncs, insert) == "Slower: syncs of the WAL became slow (96% of +400 ms a second)"
    assert (
        title((2000.0, 2400.0), insert, syncs) == "Slower: insert into journal takes longer (99% of +400 ms a second)"
    )


@pytest.mark.parametrize(
    ("waiting", "rate"),
    [
        (BlockedTime(0.1, 0.4, (1.0, 1.3), certain=True), 400.0),
        (BlockedTime(0.1, 1.4, (1.0, 2.4), certain=False), 100.0),
        (BlockedTime(0.001, 0.004, (1.0, 1.0), certain=True), 100.0),
    ],
    ids=["four times the commits", "chance", "too little"],
)
def test_commits_that_wait_as_long_each_or_by_chance_or_hardly_decide_nothing(waiting: BlockedTime, rate: float):
    assert judge(facts(1.02, waiting, rate, STANDBY), 0.05).word == "ok"


def test_a_storm_of_sessions_is_the_headline_where_the_time_of_statements_cannot_tell():
    found = judge(facts(2.0, None, 100.0, STORM), 0.05)
    assert found.word == "cannot tell"
    assert found.title.startswith(
        "Cannot tell: many more sessions begin (sessions begun 4 → 131 a second), and no statement"
    )
    assert judge(facts(1.02, None, 100.0, STORM), 0.05).word == "ok"


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.0, "as much as before"), (1.004, "as much as before"), (2.0, "2 times as much")]
)
def test_a_factor_of_one_is_said_in_words(ratio: float, words: str) -> None:
    assert _fold(ratio) == words
