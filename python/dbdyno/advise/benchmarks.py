"""Common part of the rules on benchmarks, which have one file each under `rules/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule


def rows_written(measured: Measurements) -> Evidence:
    """Return the number of rows that a transaction wrote, as evidence."""
    return Evidence("rows written by a transaction", measured.written, "number", "metrics, pg_stat_database")


def benchmark(
    name: str,
    title: str,
    condition: str,
    refuted: str,
    reads: tuple[type, ...],
    judge: Callable[[Facts], Iterable[Advice | InsufficientEvidence]],
    *,
    source: str = "pgbench manual, Good Practices (2025)",
    engines: tuple[str, ...] = ("postgres",),
) -> Rule:
    """Return a rule that explains why a benchmark's figures mean less than they seem to."""
    expects, risk = "figures that are valid beyond this run", "the better run takes longer, or needs more data"
    return Rule(name, "benchmark", title, reads, condition, expects, risk, source, refuted, judge, engines)
