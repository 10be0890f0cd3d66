"""Rules that find causes in plans: a plan change that the server's log proves, or one of a generic plan."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Pair
from dbdyno.snapshot.causes.statements import statement_label
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.wording import three_digits, time_change


def proved_flips(change: Change) -> Iterator[Cause]:
    """Yield a cause for each slower statement whose logged executions have another plan in the second period."""
    for number, proof in change.plan_proofs.items():
        one = change.statements.get(number)
        if one is None or not one.is_slower():
            continue
        tables = (table for table in change.tables.values() if table.name.rpartition(".")[2] in proof.relations)
        names = sorted(table.name for table in tables if analyzed(table))
        yield Cause(
            f"plan flip, proved by the log: {statement_label(one)}",
            f"{proof.what}; p50 {time_change(proof.old_ns / 1e6, proof.new_ns / 1e6)}"
            f" in {proof.before} and {proof.after} executions" + (f"; analyzed: {', '.join(names)}" if names else ""),
            frozenset([number]),
            "" if proof.at_us is None else instant_text(proof.at_us),
            weight=2.9,
        )


def generic_flips(change: Change) -> Iterator[Cause]:
    """Yield a cause for each slower statement whose generic plan in the snapshots changed.

    This does not prove that its executions used that plan: they may have been planned for specific values.
    """
    for number, one in change.generic_plan_flips.items():
        pair = change.statements.get(number)
        if pair is not None and number not in change.plan_proofs and (pair.is_slower() or pair.is_heavier()):
            evidence = f"{one.what}; {change.work} per call " + " → ".join(map(three_digits, pair.per_call("work")))
            yield Cause(f"another generic plan: {statement_label(pair)}", evidence, frozenset([number]), weight=2.7)


def analyzed(table: Pair) -> bool:
    """Return True if a table was analyzed in either period, by a command or by autovacuum."""
    return any(
        side.get(name) for side in (table.before, table.after) for name in ("analyze_count", "autoanalyze_count")
    )


RULES = (proved_flips, generic_flips)
