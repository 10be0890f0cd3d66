"""Two stretches of one server beside each other: rates of statements and tables in both."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dbdyno.snapshot.model import Row
from dbdyno.snapshot.reading.ends import relation
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.store.parquet import literal

if TYPE_CHECKING:
    from dbdyno.snapshot.plans.generic import Flipped
    from dbdyno.snapshot.plans.plan_changes import Proof

T = TypeVar("T")
_WORD = re.compile(r"\w+")
Key = int | str
"""A statement's identifier: a number on PostgreSQL, a digest on MariaDB."""
Rates = dict[str, float]

HEAVIER, LEAST_WORK = 1.25, 10.0
"""From so many times the work of a call on, and so much more of it, a statement does more."""
LEAST_MS = 0.2
"""Statement time that changes by less than so many milliseconds a second is steady: a 5,000th of one processor."""
LEAST_PART = 0.05
"""A statement that grew by less than such a part of all statement time is no cause by itself."""
LEAST_RATIO = 1.5
"""A statement that takes less than so much longer is not called slower."""


@dataclass(frozen=True)
class Cause:
    """One thing that happened. `statements`: whose time it moved. `direct`: it is an event or a state of the
    server, not merely the statement that shows it. `weight`: of two causes of one share the heavier comes first.
    `code` is its kind, as that of causes in runs."""

    words: str
    evidence: str = ""
    statements: frozenset[Key] = frozenset()
    when: str = ""
    direct: bool = True
    weight: float = 1.0
    code: str = ""


@dataclass(frozen=True)
class Pair:
    """One statement's or table's rates per second before and after. Of a statement: `calls`, `ms`, `work`, and what
    its engine has more."""

    name: str
    text: str
    before: Rates
    after: Rates

    def grown(self, what: str) -> float:
        """How much more per second."""
        return self.after.get(what, 0.0) - self.before.get(what, 0.0)

    def per_call(self, what: str) -> tuple[float, float]:
        """Per call, before and after; 0 without calls."""
        found = [
            side.get(what, 0.0) / side["calls"] if side.get("calls") else 0.0 for side in (self.before, self.after)
        ]
        return found[0], found[1]

    def heavier(self) -> bool:
        """Whether a call does more work than it did: that says so where times are lost in those of a busy machine."""
        old, new = self.per_call("work")
        return old > 0 and new >= HEAVIER * old and new - old >= LEAST_WORK

    def slower(self) -> bool:
        """Whether a call takes much longer than it did."""
        old, new = self.per_call("ms")
        return old > 0 and new >= LEAST_RATIO * old


class Change(ABC):
    """What rules look at: `before` and `after` are intervals of one target. An engine says how its views are read."""

    view: str
    """The view of statements."""
    times: tuple[tuple[str, float], ...]
    """Its column of time, as versions call it, and what makes milliseconds of it."""
    calls: str
    """Its column of calls."""
    work: str
    """What the work of a call is counted in."""
    work_sql: str
    """The work of a row of its view of statements."""
    sleep: re.Pattern[str]
    """What a statement calls to sleep: its time is no database time."""
    settings_view: tuple[str, str]
    """The view of settings, and its column of values."""
    jumps: tuple[tuple[str, str, str, str], ...] = ()
    """What is counted beside statements and may show where something happened: view, column, of which rows, words."""
    jitter_us: int
    """By how much the start of one life of the server, as told, may vary."""

    def __init__(self, before: Interval, after: Interval) -> None:
        self.before = before
        self.after = after
        self._once: dict[str, object] = {}

    @abstractmethod
    def read_statements(self, one: Interval, texts: dict[Key, str]) -> dict[Key, Rates]:
        """Rates of each statement; fills in the texts."""

    @abstractmethod
    def read_tables(self, one: Interval, names: dict[Hashable, str]) -> dict[Hashable, Rates]:
        """Rates and states of each table; fills in the names."""

    @abstractmethod
    def is_ours(self, text: str) -> bool:
        """Whether a statement is a collector's."""

    def go_on(self, sides: Sequence[dict[Key, Rates]]) -> None:  # noqa: B027
        """Puts the rates of a statement together that counts under another identifier than before."""

    def without_index(self, statement: Key) -> tuple[str, str] | None:
        """What a new statement does for want of an index (empty where another reason is left open), and the evidence;
        None where nothing says so."""
        return None

    @cached_property
    def statements(self) -> dict[Key, Pair]:
        """Statements by identifier, without our own and without those that sleep."""
        return {key: one for key, one in self._counted.items() if not self.sleep.search(one.text)}

    @cached_property
    def slept_ms(self) -> float:
        """Milliseconds a second of statements that sleep, in the second stretch."""
        return sum(one.after.get("ms", 0.0) for one in self._counted.values() if self.sleep.search(one.text))

    @cached_property
    def _counted(self) -> dict[Key, Pair]:
        texts: dict[Key, str] = {}
        sides = [self.read_statements(one, texts) for one in (self.before, self.after)]
        self.go_on(sides)
        every = sides[0].keys() | sides[1].keys()
        return {
            one: Pair(str(one), texts.get(one, ""), sides[0].get(one, {}), sides[1].get(one, {}))
            for one in every
            if not self.is_ours(texts.get(one, ""))
        }

    @cached_property
    def tables(self) -> dict[Hashable, Pair]:
        """Tables by what names them on their engine."""
        names: dict[Hashable, str] = {}
        sides = [self.read_tables(one, names) for one in (self.before, self.after)]
        return {key: Pair(name, "", sides[0].get(key, {}), sides[1].get(key, {})) for key, name in names.items()}

    @cached_property
    def proved(self) -> Mapping[Key, Proof]:
        """Statements whose plan is another one in the second stretch, by the logs that are kept."""
        from dbdyno.snapshot.plans.plan_changes import proofs

        return proofs(self.before, self.after)

    @cached_property
    def generic(self) -> Mapping[Key, Flipped]:
        """Statements whose generic plan is another one at the end, where snapshots hold plans."""
        from dbdyno.snapshot.plans.generic import flipped

        return flipped(self.before, self.after)

    @cached_property
    def states(self) -> tuple[dict[Hashable, dict[str, object]], ...]:
        """PostgreSQL's rows of tables at the beginning of the first stretch, one sub-interval before its end, for a cut
        may lie one too late, and at the end of the second."""
        view = "pg_stat_user_tables"
        ends = self.before.ends(view)
        middle = relation(self.before.chain[-2], view) if len(self.before.chain) > 2 else ends[1]
        sources = (ends[0], middle, self.after.ends(view)[1])
        return tuple(
            {(row["datid"], row["relid"]): row for row in self.before.query(f"select * from {one}")} for one in sources
        )

    @cached_property
    def spent_ms(self) -> tuple[float, float]:
        """Milliseconds of all statements a second, before and after."""
        every = self.statements.values()
        return sum(one.before.get("ms", 0.0) for one in every), sum(one.after.get("ms", 0.0) for one in every)

    @cached_property
    def gained_ms(self) -> float:
        """Milliseconds a second that statements which take more now have more."""
        return sum(max(one.grown("ms"), 0.0) for one in self.statements.values())

    @cached_property
    def naming(self) -> Mapping[str, Collection[Key]]:
        """Statements by the words of their texts, in small letters: ten thousand texts are searched once."""
        found: dict[str, set[Key]] = {}
        for number, one in self.statements.items():
            for word in set(_WORD.findall(one.text.lower())):
                found.setdefault(word, set()).add(number)
        return found

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What rules ask for again and again."""
        if name not in self._once:
            self._once[name] = make()
        return cast("T", self._once[name])

    @property
    def grown_ms(self) -> float:
        """Milliseconds of statement time a second more than before."""
        return self.spent_ms[1] - self.spent_ms[0]

    def gone_in(self, view: str, which: str) -> Row | None:
        """The last sub-interval in which rows of a view, of this condition, went; None where that is of none."""
        for one in (self.after, self.before):
            source, _ = one.sums.relation(view, folded=False) if len(one.chain) > 2 else (None, ())
            found = source and one.query(f"select max(part) as part from {source} where life = 'gone' and {which}")
            if found and found[0]["part"] is not None:
                return next(part for part in one.sums.parts() if part["number"] == found[0]["part"])
        return None

    def gone_early(self, part: Row | None) -> bool:
        """Whether what went in a sub-interval was gone for most of the first stretch: then the second differs from it
        for another reason."""
        first, last = self.before.before, self.before.after
        return part is not None and part["number"] <= last.number and part["at_us"] * 2000 < first.at_ns + last.at_ns

    def remarks(self) -> list[str]:
        """What else is to be known of the two stretches, as sentences without a point."""
        return []

    def share(self, statements: Iterable[Key]) -> float | None:
        """What part of the change these have; None where time did not grow."""
        every = self.gained_ms
        some = sum(max(self.statements[n].grown("ms"), 0.0) for n in statements if n in self.statements)
        return some / every if every > 0 and self.grown_ms > 0 else None

    def matters(self, statement: Key) -> bool:
        """Whether a statement grew by more than what a steady load sways by."""
        old, new = self.spent_ms
        return self.statements[statement].grown("ms") >= max(LEAST_MS, LEAST_PART * max(old, new))

    def of_table(self, name: str, *, slower: bool = True) -> frozenset[Key]:
        """The statements that name a table, those that became slower."""
        word = name.rpartition(".")[2].lower()
        some: Collection[Key] = self.naming.get(word, ())
        if not _WORD.fullmatch(word):
            sought = re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])", re.I)
            some = [number for number, one in self.statements.items() if sought.search(one.text)]
        return frozenset(number for number in some if not slower or self.statements[number].slower())

    def heavier_of(self, name: str) -> frozenset[Key]:
        """The statements that name a table and do more work a call than they did, or take longer."""
        named = self.of_table(name, slower=False)
        return frozenset(n for n in named if self.statements[n].heavier() or self.statements[n].slower())

    def totals(self, view: str, *names: str, where: str = "true") -> tuple[dict[str, float], dict[str, float]]:
        """Rates per second of counters, summed over a view's rows (of the condition); those that both have."""
        has = {n for n in names if self.both(view) and n in self.before.columns(view) & self.after.columns(view)}
        found = []
        for one in (self.before, self.after):
            row = (
                one.query(
                    f"select {', '.join(f'sum({n}) as {n}' for n in sorted(has))} from {view} where {where}", view
                )
                if has
                else [{}]
            )
            found.append({name: float(value or 0) / one.seconds for name, value in row[0].items()})
        return found[0], found[1]

    def both(self, view: str) -> bool:
        """Whether both stretches have a view."""
        return self.before.has(view) and self.after.has(view)

    @property
    def restarted(self) -> bool:
        """Whether another life of the server is at the end than at the beginning."""
        return self.other_life(self.before.before, self.after.after)

    @classmethod
    def other_life(cls, one: Snapshot, other: Snapshot) -> bool:
        """Whether the server was started between two snapshots."""
        old, new = one.facts.get("started_us"), other.facts.get("started_us")
        return bool(old and new and abs(new - old) > cls.jitter_us)

    def setting(self, name: str) -> tuple[str | None, str | None]:
        """A setting at the beginning of the first stretch and the end of the second."""
        view, column = self.settings_view
        found: list[str | None] = []
        for end, one in enumerate((self.before, self.after)):
            sql = f"select {column} as value from {one.ends(view)[end]} where name = {literal(name)}"
            rows = one.query(sql) if one.has(view) else []
            found.append(str(rows[0]["value"]) if rows else None)
        return found[0], found[1]

    def changed_settings(self, ignored: Iterable[str] = ()) -> list[dict[str, object]]:
        """Settings that are not what they were: name, old, new."""
        view, column = self.settings_view
        if not self.both(view):
            return []
        kept = f"and name not in ({', '.join(map(literal, ignored))})" if ignored else ""
        return self.before.query(
            f"select name, a.{column} as old, b.{column} as new from {self.before.ends(view)[0]} a"
            f" join {self.after.ends(view)[1]} b using (name) where a.{column} is distinct from b.{column} {kept}"
            " order by name"
        )


def rates(row: dict[str, Any], seconds: float) -> Rates:
    """Counts of a row as rates per second."""
    return {name: float(value or 0) / seconds for name, value in row.items()}
