"""Rule: a benchmark writes while autovacuum is off."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark, rows_written
from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Measurements, Setting
from dbdyno.advise.rule import Advice, Evidence

LEAST_WRITTEN = 0.1


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if autovacuum is off while transactions write."""
    one, switch = facts.row_of(Measurements), facts.setting("autovacuum")
    if switch is None or switch.is_on or one.written is None or one.written < LEAST_WRITTEN:
        return
    yield Advice(
        f"autovacuum is off, and a transaction writes {one.written:.3g} rows",
        (
            Evidence("autovacuum", switch.value, "text", "manifest.json, targets, settings"),
            rows_written(one),
        ),
        "the cost of vacuum is missing, and dead rows pile up: no server in production has such figures",
        ("alter system set autovacuum = on  -- in all arms, and a run long enough for it to work",),
        subject="autovacuum",
    )


RULE = benchmark(
    "unvacuumed_benchmark",
    "Writes without autovacuum",
    "autovacuum is off, and a transaction writes a tenth of a row or more",
    "the same run with autovacuum has the same figures",
    (Measurements, Setting),
    judge,
)
