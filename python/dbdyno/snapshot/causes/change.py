"""Two stretches of one server beside each other: rates of statements and tables in both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.postgres.facts import is_ours
from dbdyno.snapshot.postgres.parts import present

LEAST_RATIO = 1.5
"""A statement that takes less than so much longer is not called slower."""


@dataclass(frozen=True)
class Cause:
    """One thing that happened. `statements`: whose time it moved. `direct`: it is an event or a state of the
    server, not merely the statement that shows it. `weight`: of two causes of one share the heavier comes first."""

    words: str
    evidence: str = ""
    statements: frozenset[int] = frozenset()
    when: str = ""
    direct: bool = True
    weight: float = 1.0


@dataclass(frozen=True)
class Pair:
    """One statement's or table's rates per second before and after."""

    name: str
    text: str
    before: dict[str, float]
    after: dict[str, float]

    def grown(self, what: str) -> float:
        """How much more per second."""
        return self.after.get(what, 0.0) - self.before.get(what, 0.0)

    def per_call(self, what: str) -> tuple[float, float]:
        """Per call, before and after; 0 without calls."""
        found = [
            side.get(what, 0.0) / side["calls"] if side.get("calls") else 0.0 for side in (self.before, self.after)
        ]
        return found[0], found[1]

    def slower(self) -> bool:
        """Whether a call takes much longer than it did."""
        old, new = self.per_call("ms")
        return old > 0 and new >= LEAST_RATIO * old


class Change:
    """What rules look at: `before` and `after` are intervals of one target."""

    def __init__(self, before: Interval, after: Interval) -> None:
        self.before = before
        self.after = after

    @cached_property
    def statements(self) -> dict[int, Pair]:
        """Statements by identifier, without our own."""
        texts: dict[int, str] = {}
        sides = [_statements(one, texts) for one in (self.before, self.after)]
        every = sides[0].keys() | sides[1].keys()
        return {
            one: Pair(str(one), texts.get(one, ""), sides[0].get(one, {}), sides[1].get(one, {}))
            for one in every
            if not is_ours(texts.get(one, ""))
        }

    @cached_property
    def tables(self) -> dict[tuple[int, int], Pair]:
        """Tables by database and number."""
        names: dict[tuple[int, int], str] = {}
        sides = [_tables(one, names) for one in (self.before, self.after)]
        return {key: Pair(name, "", sides[0].get(key, {}), sides[1].get(key, {})) for key, name in names.items()}

    @cached_property
    def grown_ms(self) -> float:
        """Milliseconds of statement time a second more than before."""
        return sum(one.grown("ms") for one in self.statements.values())

    def share(self, statements: Iterable[int]) -> float | None:
        """What part of the change these have; None where time did not grow."""
        every = sum(max(one.grown("ms"), 0.0) for one in self.statements.values())
        some = sum(max(self.statements[n].grown("ms"), 0.0) for n in statements if n in self.statements)
        return some / every if every > 0 and self.grown_ms > 0 else None

    def of_table(self, name: str, *, slower: bool = True) -> frozenset[int]:
        """The statements that name a table, those that became slower."""
        word = re.compile(rf"(?<![\w]){re.escape(name.rpartition('.')[2])}(?![\w])", re.I)
        return frozenset(
            number for number, one in self.statements.items() if word.search(one.text) and (one.slower() or not slower)
        )

    def totals(self, view: str, *names: str) -> tuple[dict[str, float], dict[str, float]]:
        """Rates per second of counters, summed over a view's rows; those that both have."""
        has = {n for n in names if self.both(view) and n in self.before.columns(view) & self.after.columns(view)}
        found = []
        for one in (self.before, self.after):
            row = (
                one.query(f"select {', '.join(f'sum({n}) as {n}' for n in sorted(has))} from {view}", view)
                if has
                else [{}]
            )
            found.append({name: float(value or 0) / one.seconds for name, value in row[0].items()})
        return found[0], found[1]

    def both(self, view: str) -> bool:
        """Whether both stretches have a view."""
        return self.before.has(view) and self.after.has(view)


def _statements(one: Interval, texts: dict[int, str]) -> dict[int, dict[str, float]]:
    view = "pg_stat_statements"
    if not one.has(view):
        return {}
    has = one.columns(view)
    time = "total_exec_time" if "total_exec_time" in has else "total_time"
    top = "and toplevel is not false" if "toplevel" in has else ""
    rows = one.query(
        f"select queryid, sum(calls) as calls, sum({time}) as ms, sum(rows) as rows,"
        f" sum(shared_blks_hit + shared_blks_read) as blocks, sum(shared_blks_read) as reads,"
        f" sum(temp_blks_written) as temp, sum({present('wal_bytes', has)}) as wal"
        f" from {view} where verdict in ('ok', 'evicted') and calls > 0 {top} group by 1",
        view,
    )
    if one.after.file("statement_texts") is not None:
        for row in one.query(f"select queryid, query from {one.ends('statement_texts')[1]}"):
            texts[int(row["queryid"])] = row["query"] or ""
    return {int(row["queryid"]): _rates(row, one.seconds) for row in rows}


def _tables(one: Interval, names: dict[tuple[int, int], str]) -> dict[tuple[int, int], dict[str, float]]:
    view = "pg_stat_user_tables"
    if not one.has(view):
        return {}
    found = {}
    for row in one.query(f"select * from {view} where verdict = 'ok'", view):
        key = (int(row["datid"]), int(row["relid"]))
        schema = row["schemaname"]
        names[key] = row["relname"] if schema == "public" else f"{schema}.{row['relname']}"
        counted = {c.name for c in one.counters(view)}
        states = {n: float(v) for n, v in row.items() if n in ("n_live_tup", "n_dead_tup") and v is not None}
        found[key] = _rates({n: v for n, v in row.items() if n in counted}, one.seconds) | states
    return found


def _rates(row: dict[str, Any], seconds: float) -> dict[str, float]:
    return {name: float(value or 0) / seconds for name, value in row.items() if name != "queryid"}


def three(value: float) -> str:
    """Three significant digits, never with an exponent: `1,930`, `0.111`."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{Decimal(str(rounded)):f}".removesuffix(".0")


def times(old: float, new: float) -> str:
    """`162 µs → 5.43 ms`, from milliseconds."""
    return f"{_span(old)} → {_span(new)}"


def rate(old: float, new: float) -> str:
    """`0 → 212 a second`."""
    return f"{three(old)} → {three(new)} a second"


def _span(ms: float) -> str:
    if ms <= 0:
        return "0"
    for limit, factor, unit in ((1, 1e3, "µs"), (1000, 1, "ms")):
        if ms < limit:
            return f"{three(ms * factor)} {unit}"
    return f"{three(ms / 1000)} s"
