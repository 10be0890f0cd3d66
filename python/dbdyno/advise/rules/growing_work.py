"""Rule: transactions whose work grows with the data that they add."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

GROWN = 1.3
LEAST_BLOCKS = 6
LEAST_ROWS = 10.0


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if a transaction reads more rows at the end than at the beginning while the tables grow."""
    one = facts.row_of(Measurements)
    if one.rows_read is None or one.rows_there is None or one.blocks < LEAST_BLOCKS:
        yield InsufficientEvidence(
            "rows were not counted per block, or there are fewer than six blocks", "counters = true, 6 blocks"
        )
        return
    third = one.blocks // 3
    first, last = (sum(part) / third for part in (one.rows_read[:third], one.rows_read[-third:]))
    there = one.rows_there[0], one.rows_there[-1]
    if last < max(GROWN * first, LEAST_ROWS) or there[1] < 1.05 * there[0]:
        return
    yield Advice(
        f"a transaction's work grows with the data: {count(first)} rows read in the first third of the run,"
        f" {count(last)} in the last, while the tables went from {count(there[0])} to {count(there[1])} rows",
        (
            Evidence("rows read at the beginning", first, "number", "metrics, pg_stat_user_tables, first third"),
            Evidence("rows read at the end", last, "number", "metrics, pg_stat_user_tables, last third"),
            Evidence("rows of the tables at the end", there[1], "count", "metrics, pg_stat_user_tables, n_live_tup"),
        ),
        "the figure is a mean over arbitrary data sizes: a longer run is slower, whatever is tested",
        (
            "-- delete the rows that a transaction adds, or read by key; or use a fixed number of "
            "transactions in each arm",
        ),
        subject="work",
    )


RULE = benchmark(
    "growing_work",
    "Work that grows with the data",
    "a transaction reads 1.3 times as many rows in the last third of the blocks as in the first, and the tables grew "
    "by 5 %",
    "the last block alone is as fast as the first",
    (Measurements,),
    judge,
)
