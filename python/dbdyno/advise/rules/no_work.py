"""Rule: a rate is measured with transactions that do nothing."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark, rows_written
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

LEAST_ROWS = 0.01


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if transactions read and write no table rows, so that their rate is not a throughput."""
    one = facts.row_of(Measurements)
    if one.rows_read is None or one.written is None:
        yield InsufficientEvidence("rows were not counted", "counters = true under [watch]")
        return
    rows = sum(one.rows_read) / max(len(one.rows_read), 1)
    if rows >= LEAST_ROWS or one.written >= LEAST_ROWS or not one.transactions:
        return
    yield Advice(
        f"{count(one.transactions)} transactions touched {rows:.2g} rows each: their rate only measures round trips",
        (
            Evidence("rows read by a transaction", rows, "number", "metrics, pg_stat_user_tables"),
            rows_written(one),
            Evidence("transactions", one.transactions, "count", "calls, base arm"),
        ),
        "this is not the throughput of a database: it measures parsing, the protocol and process switches",
        ("-- use a workload that reads or writes what the claim is about",),
        level="hint",
        subject="rows",
    )


RULE = benchmark(
    "no_work",
    "Transactions that do almost no work",
    "a transaction reads and writes less than a hundredth of a row of any table",
    "the claim is about round trips or connections",
    (Measurements,),
    judge,
)
