"""Rehearsals on a busy machine: too few measurements are still used, and the report names what took the time."""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from scipy import special

from dbdyno.rehearse.answer import Answer
from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.decision import decide, is_settled, prior_of, total
from dbdyno.rehearse.measuring import Bench, measure
from dbdyno.rehearse.rehearsed_statement import LEAST_BLOCKS, NO_TIME_FOR_BLOCKS, RehearsedStatement, Trial
from dbdyno.rehearse.run_queue import Stopwatch, is_local, run_queue_of
from dbdyno.rehearse.shortage import shortage_of
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.spread import common_prior, digamma, moderated_error, trigamma
from dbdyno.rehearse.statement import Parameters, Statement
from dbdyno.rehearse.verdict import judge


class Closed:
    """A side that executes nothing."""

    def close(self) -> None: ...


def statement(number: int, total_ns: int = 1_000) -> RehearsedStatement:
    item = RehearsedStatement(Statement(number, f"select {number}", calls=10, total_ns=total_ns))
    item.trials = [Trial(Parameters(item.statement.text), Answer(), Answer(), "", elapsed_ns=100_000)]
    return item


def measured_in(
    items: Sequence[RehearsedStatement], block_s: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> Budget:
    """Measure statements whose blocks take `block_s`, on a clock that only blocks advance."""
    now, dice = [0.0], random.Random(5)
    monkeypatch.setattr("dbdyno.rehearse.budget.time.monotonic", lambda: now[0])

    def run_block(item: RehearsedStatement, *_: object, **__: object) -> None:
        now[0] += block_s
        item.old_ns.append(1e6)
        item.new_ns.append(1e6 * math.exp(dice.gauss(0, 0.1)))
        item.processes.append(len(item.processes))

    monkeypatch.setattr("dbdyno.rehearse.measuring.run_block", run_block)
    budget = Budget(seconds, begun=0.0)
    closed = cast(Side, Closed())
    with budget.phase("blocks"):
        measure(items, Bench(closed, closed, budget, dice, 0.1), 0.65)
    return budget


def test_300_statements_on_a_slow_machine_leave_the_heaviest_with_enough_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [statement(number, total_ns=1_000_000 // number) for number in range(1, 301)]
    measured_in(items, 0.15, 60, monkeypatch)
    judged = [item.statement.number for item in items if len(item.old_ns) >= LEAST_BLOCKS]
    assert len(judged) > 60, "60 s are 400 blocks; the first round once took all of them"
    assert judged == list(range(1, len(judged) + 1)), "the heaviest"
    assert not any(0 < len(item.old_ns) < LEAST_BLOCKS for item in items), "no block is thrown away"


def test_a_rehearsal_that_times_nothing_names_what_took_the_time_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [statement(number) for number in range(1, 21)]
    budget = measured_in(items, 4.0, 10, monkeypatch)
    budget.spent["answers"] = 3.0
    for item in items:
        item.reason = NO_TIME_FOR_BLOCKS
    decisions = decide(items, 0.1)
    shortage = shortage_of(items, budget)
    assert shortage is not None
    verdict = judge(decisions, total(decisions), {}, "The new side", 0.1, shortage)
    blocks = sum(len(item.old_ns) for item in items)
    said = f"the answers of 20 statements took 3 s, and {blocks} blocks {4 * blocks} s"
    assert verdict.headline.startswith(f"No statement could be timed: {said}")
    assert verdict.decision == "no verdict"
    # An answer takes 0.15 s and a block 4 s: 20 statements with three blocks each need 243 s, and a fifth for the rest.
    assert verdict.next.startswith("give more time (--for 6min)")


def test_what_there_was_time_for_needs_no_more() -> None:
    assert shortage_of([statement(1)], Budget(10)) is None


def test_settled_statements_get_no_more_blocks_and_are_rarely_slower() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for number in range(800):
        logs = rng.normal(math.log(1.1), 0.04, 12)
        item = statement(number)
        for at in range(12):
            item.old_ns.append(1e6)
            item.new_ns.append(1e6 * math.exp(logs[at]))
            if is_settled(item, 0.1):
                wrong += 1
                break
    assert wrong <= 0.005 * 800, "all looks together, of statements that are slower by the threshold"


def test_the_common_spread_is_found_where_statements_share_it() -> None:
    rng = np.random.default_rng(4)
    prior = common_prior([list(rng.normal(0, 0.1, 4)) for _ in range(400)])
    assert math.sqrt(prior.variance) == pytest.approx(0.1, rel=0.1)
    assert prior.freedom > 10
    scattered = common_prior([list(rng.normal(0, 0.1 * math.exp(rng.normal(0, 1.5)), 4)) for _ in range(400)])
    assert scattered.freedom < 3, "statements that differ share little"
    assert common_prior([[0.1, 0.2, 0.4]] * 5).freedom == 0, "too few statements"


def test_intervals_of_moderated_spreads_hold_95_percent() -> None:
    rng = np.random.default_rng(5)
    groups = [list(rng.normal(0, 0.05 * math.exp(rng.normal(0, 0.5)), 3)) for _ in range(2_000)]
    items = [statement(at) for at in range(len(groups))]
    for item, logs in zip(items, groups, strict=True):
        item.old_ns, item.new_ns = [1e6] * 3, [1e6 * math.exp(one) for one in logs]
    decisions = decide(items, 0.1)
    covered = statistics.fmean(one.low <= 1 <= one.high for one in decisions)
    assert 0.93 < covered < 0.97
    own = statistics.fmean(moderated_error(logs)[1] for logs in groups) * 4.303
    widths = statistics.fmean(math.log(one.high / one.low) / 2 for one in decisions)
    assert widths < 0.75 * own, "that is what the other statements' spread is worth"
    assert prior_of(items).freedom > 1


@pytest.mark.parametrize("x", [0.3, 1.0, 2.5, 30.0])
def test_digamma_and_trigamma_are_those_of_scipy(x: float) -> None:
    assert digamma(x) == pytest.approx(special.digamma(x), rel=1e-9)
    assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-9)


def process(folder: Path, number: int, name: str, age_s: float) -> Path:
    """Write a folder that looks like a process's folder in `/proc`."""
    own = folder / str(number)
    own.mkdir(parents=True)
    begun = (time.clock_gettime(time.CLOCK_BOOTTIME) - age_s) * os.sysconf("SC_CLK_TCK")
    (own / "stat").write_text(f"{number} ({name}) S{' 0' * 18} {begun:.0f} 0\n")
    (own / "schedstat").write_text("0 0 0\n")
    return own


def test_the_wait_of_the_server_is_subtracted_but_not_its_work(tmp_path: Path) -> None:
    own = process(tmp_path, 7, "postgres", 0.1)
    queue = run_queue_of(7, tmp_path)
    assert queue is not None
    watch = Stopwatch(queue)
    watch.start()
    time.sleep(0.02)
    (own / "schedstat").write_text("1000000 15000000 1\n")
    assert 1_000_000 <= watch.stop() <= watch.elapsed_ns - 15_000_000, "and less what this thread waited"
    watch.start()
    time.sleep(0.002)
    (own / "schedstat").write_text("2000000 95000000 1\n")
    assert watch.stop() == 1_000_000, "a wait that began before the start: at least the server's work is left"
    watch.close()


@pytest.mark.parametrize(("name", "age_s"), [("bash", 0.1), ("postgres", 60.0)])
def test_a_process_that_is_not_the_new_connections_own_is_not_watched(tmp_path: Path, name: str, age_s: float) -> None:
    process(tmp_path, 7, name, age_s)
    assert run_queue_of(7, tmp_path) is None
    assert run_queue_of(8, tmp_path) is None, "there is none"


def test_only_servers_of_this_machine_are_watched() -> None:
    assert is_local({"host": "/tmp"}) and is_local({"host": "127.0.0.1"}) and is_local({"host": "localhost"})
    assert not is_local({"host": "db.example"}) and not is_local({"host": "localhost", "hostaddr": "10.0.0.1"})
