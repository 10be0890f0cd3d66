"""Rules for causes in plans: another plan, as the server's log proves, or another generic plan in the snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Pair
from dbdyno.snapshot.causes.statements import named
from dbdyno.snapshot.model import moment_us
from dbdyno.snapshot.wording import three, times


def proved_flips(change: Change) -> Iterator[Cause]:
    """Yield a cause for each slower statement whose logged executions have another plan in the second period."""
    for number, proof in change.proved.items():
        one = change.statements.get(number)
        if one is None or not one.slower():
            continue
        tables = (table for table in change.tables.values() if table.name.rpartition(".")[2] in proof.relations)
        names = sorted(table.name for table in tables if analyzed(table))
        yield Cause(
            f"plan flip, proved by the log: {named(one)}",
            f"{proof.what}; p50 {times(proof.old_ns / 1e6, proof.new_ns / 1e6)}"
            f" in {proof.before} and {proof.after} executions" + (f"; analyzed: {', '.join(names)}" if names else ""),
            frozenset([number]),
            "" if proof.at_us is None else moment_us(proof.at_us),
            weight=2.9,
        )


def generic_flips(change: Change) -> Iterator[Cause]:
    """Yield a cause for each slower statement whose generic plan in the snapshots changed.

    This does not prove that its executions used that plan: they may be planned for their values.
    """
    for number, one in change.generic.items():
        pair = change.statements.get(number)
        if pair is not None and number not in change.proved and (pair.slower() or pair.heavier()):
            evidence = f"{one.what}; {change.work} per call " + " → ".join(map(three, pair.per_call("work")))
            yield Cause(f"another generic plan: {named(pair)}", evidence, frozenset([number]), weight=2.7)


def analyzed(table: Pair) -> bool:
    """Return True if a table was analyzed in either period, by a command or by autovacuum."""
    return any(
        side.get(name) for side in (table.before, table.after) for name in ("analyze_count", "autoanalyze_count")
    )


RULES = (proved_flips, generic_flips)
