"""Comparison of two periods of one server: the rates of statements and tables in both."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from dbdyno.base.json_types import TableRow
from dbdyno.base.sections import Row
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.reading.ends import relation
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.statement_texts import statement_texts
from dbdyno.snapshot.store.folder import Snapshot

if TYPE_CHECKING:
    from dbdyno.snapshot.plans.generic import GenericFlip
    from dbdyno.snapshot.plans.plan_changes import Proof

T = TypeVar("T")
_WORD = re.compile(r"\w+")
Key = int | str
"""A statement's identifier: queryid on PostgreSQL, digest on MariaDB, SQL_ID on Oracle."""
Rates = dict[str, float]

HEAVIER_FACTOR, LEAST_WORK = 1.25, 10.0
"""Smallest growth factor and smallest increase of the work per call for a statement to count as doing more work."""
LEAST_MS = 0.2
"""Smallest change of statement time, in ms per second, that does not count as steady: a 5,000th of one processor."""
LEAST_SHARE = 0.05
"""Smallest growth of a statement's time, as a share of all statement time, that counts as a cause."""
LEAST_RATIO = 1.5
"""Smallest growth factor of the time per call for which a statement counts as slower."""


@dataclass(frozen=True)
class Cause:
    """A cause of a change: something that happened, its evidence, and the statements whose time it changed.

    Attributes:
        words: What happened, as a phrase.
        evidence: The figures that show it.
        statements: The statements whose time it changed.
        when: When it happened, in words; empty if not known.
        direct: True for an event or a state of the server; False if all that is known is which statements changed.
        weight: Of two causes with the same share, the one with the larger weight comes first.
        code: Code for the kind of cause; runs use the same codes.
    """

    words: str
    evidence: str = ""
    statements: frozenset[Key] = frozenset()
    when: str = ""
    direct: bool = True
    weight: float = 1.0
    code: str = ""


@dataclass(frozen=True)
class Pair:
    """Rates per second of one statement or table in the first period (`before`) and in the second (`after`).

    The rates of a statement are `calls`, `ms`, `work`, and whatever else its engine counts.
    """

    name: str
    text: str
    before: Rates
    after: Rates

    def growth(self, what: str) -> float:
        """Return the increase of a rate per second; negative if it fell."""
        return self.after.get(what, 0.0) - self.before.get(what, 0.0)

    def per_call(self, what: str) -> tuple[float, float]:
        """Return the amount of `what` per call, before and after; 0 if there were no calls."""
        found = [
            side.get(what, 0.0) / side["calls"] if side.get("calls") else 0.0 for side in (self.before, self.after)
        ]
        return found[0], found[1]

    def is_heavier(self) -> bool:
        """Return True if a call does more work than before.

        Work per call does not depend on how busy the machine is; time per call does.
        """
        old, new = self.per_call("work")
        return old > 0 and new >= HEAVIER_FACTOR * old and new - old >= LEAST_WORK

    def is_slower(self) -> bool:
        """Return True if a call takes at least `LEAST_RATIO` times as long as before."""
        old, new = self.per_call("ms")
        return old > 0 and new >= LEAST_RATIO * old


class Change(ABC):
    """The input of the rules: two intervals of one target, `before` and `after`.

    Each engine has a subclass that reads the engine's views.
    """

    view: str
    """Name of the view of statements."""
    times: tuple[tuple[str, float], ...]
    """Columns that may hold the statement time, depending on the version, each with its factor for conversion to ms."""
    calls: str
    """Column with the number of calls."""
    work: str
    """Unit of a call's work, such as blocks."""
    work_sql: str
    """SQL expression for the work of one row of the view of statements."""
    sleep: re.Pattern[str]
    """Pattern of calls to sleep functions; the time of statements with such a call is not database time."""
    settings_view: tuple[str, str]
    """Name of the view of settings, and of its column with the values."""
    jumps: tuple[tuple[str, str, str, str], ...] = ()
    """Counters outside the statement view that can show when something happened: view, column, SQL condition, text."""
    jitter_us: int = 0
    """Largest difference in microseconds between reported start times of the same server process."""

    def __init__(self, before: Interval, after: Interval) -> None:
        self.before = before
        self.after = after
        self._once: dict[str, object] = {}

    @abstractmethod
    def read_statements(self, interval: Interval, texts: dict[Key, str]) -> dict[Key, Rates]:
        """Return the rates of each statement, and add the statements' texts to `texts`."""

    @abstractmethod
    def read_tables(self, interval: Interval, names: dict[Hashable, str]) -> dict[Hashable, Rates]:
        """Return the rates and current values of each table, and add the tables' names to `names`."""

    @abstractmethod
    def is_ours(self, text: str) -> bool:
        """Return True for a statement that dbdyno's collector sends."""

    def merge_renumbered(self, sides: Sequence[dict[Key, Rates]]) -> None:  # noqa: B027
        """Merge in place the rates of statements that continue under a new identifier; does nothing by default."""

    def missing_index(self, statement: Key) -> tuple[str, str] | None:
        """Return in words what a new statement does for lack of an index (it scans a whole table), and the evidence.

        The first text is empty if there may be another reason. Returns None if nothing indicates a missing index.
        """
        return None

    @cached_property
    def statements(self) -> dict[Key, Pair]:
        """Return the statements by identifier, without dbdyno's own and without those that sleep."""
        return {key: one for key, one in self._counted.items() if not self.sleep.search(one.text)}

    @cached_property
    def slept_ms(self) -> float:
        """Return the time of sleeping statements in ms per second, for the second period."""
        return sum(one.after.get("ms", 0.0) for one in self._counted.values() if self.sleep.search(one.text))

    @cached_property
    def _counted(self) -> dict[Key, Pair]:
        texts: dict[Key, str] = {}
        sides = [self.read_statements(self.before, texts)]
        if self.after is self.before:
            sides.append({key: dict(one) for key, one in sides[0].items()})
        else:
            sides.append(self.read_statements(self.after, texts))
        self.merge_renumbered(sides)
        every = sides[0].keys() | sides[1].keys()
        return {
            one: Pair(str(one), texts.get(one, ""), sides[0].get(one, {}), sides[1].get(one, {}))
            for one in every
            if not self.is_ours(texts.get(one, ""))
        }

    @cached_property
    def tables(self) -> dict[Hashable, Pair]:
        """Return the tables by their key, which depends on the engine."""
        names: dict[Hashable, str] = {}
        sides = [self.read_tables(one, names) for one in (self.before, self.after)]
        return {key: Pair(name, "", sides[0].get(key, {}), sides[1].get(key, {})) for key, name in names.items()}

    @cached_property
    def plan_proofs(self) -> Mapping[Key, Proof]:
        """Return the statements whose plan differs in the second period according to stored server logs."""
        from dbdyno.snapshot.plans.plan_changes import proofs

        return proofs(self.before, self.after)

    @cached_property
    def generic_plan_flips(self) -> Mapping[Key, GenericFlip]:
        """Return the statements whose generic plan changed by the second period's end, if snapshots hold such plans."""
        from dbdyno.snapshot.plans.generic import generic_flips

        return generic_flips(self.before, self.after)

    @cached_property
    def states(self) -> tuple[dict[Hashable, dict[str, object]], ...]:
        """Return the rows of pg_stat_user_tables at three instants, each as a dict by (datid, relid).

        The instants are the beginning of the first period, one sub-interval before its end (because the end that was
        chosen may be one sub-interval too late), and the end of the second period.
        """
        view = "pg_stat_user_tables"
        ends = self.before.ends(view)
        middle = relation(self.before.chain[-2], view) if len(self.before.chain) > 2 else ends[1]
        sources = (ends[0], middle, self.after.ends(view)[1])
        return tuple(
            {(row["datid"], row["relid"]): row for row in self.before.query(f"select * from {one}")} for one in sources
        )

    @cached_property
    def spent_ms(self) -> tuple[float, float]:
        """Return the time of all statements in ms per second, before and after."""
        every = self.statements.values()
        return sum(one.before.get("ms", 0.0) for one in every), sum(one.after.get("ms", 0.0) for one in every)

    @cached_property
    def summed_growth_ms(self) -> float:
        """Return the total increase in time of those statements whose time grew, in ms per second."""
        return sum(max(one.growth("ms"), 0.0) for one in self.statements.values())

    @cached_property
    def statements_by_word(self) -> Mapping[str, Collection[Key]]:
        """Return, for each lower-case word, the statements that contain it, so that each text is searched only once."""
        found: dict[str, set[Key]] = {}
        for number, one in self.statements.items():
            for word in set(_WORD.findall(one.text.lower())):
                found.setdefault(word, set()).add(number)
        return found

    def compute_once(self, name: str, make: Callable[[], T]) -> T:
        """Return the result of `make()`, computed once and cached under `name`; several rules need it."""
        if name not in self._once:
            self._once[name] = make()
        return cast("T", self._once[name])

    @property
    def growth_ms(self) -> float:
        """Return the increase of total statement time in ms per second; negative if it fell."""
        return self.spent_ms[1] - self.spent_ms[0]

    def last_disappearance(self, view: str, which: str) -> Row | None:
        """Return the last sub-interval in which rows of a view disappeared; None if none did in either period.

        `which` is an SQL condition that selects the rows. Periods of a single sub-interval are not searched.
        """
        for one in (self.after, self.before):
            source, _ = one.sums.relation(view, folded=False) if len(one.chain) > 2 else (None, ())
            found = source and one.query(f"select max(part) as part from {source} where life = 'gone' and {which}")
            if found and found[0]["part"] is not None:
                return next(part for part in one.sums.parts() if part["number"] == found[0]["part"])
        return None

    def disappeared_early(self, part: Row | None) -> bool:
        """Return True if rows that disappeared in the sub-interval `part` were missing for most of the first period.

        In that case the disappearance does not explain how the second period differs from the first.
        """
        first, last = self.before.before, self.before.after
        return part is not None and part["number"] <= last.number and part["at_us"] * 2000 < first.at_ns + last.at_ns

    def remarks(self) -> list[str]:
        """Return further facts about the two periods, as sentences without a full stop."""
        return []

    def share(self, statements: Iterable[Key]) -> float | None:
        """Return the share of these statements in the increase of statement time; None if that time did not grow."""
        every = self.summed_growth_ms
        some = sum(max(self.statements[n].growth("ms"), 0.0) for n in statements if n in self.statements)
        return some / every if every > 0 and self.growth_ms > 0 else None

    def matters(self, statement: Key) -> bool:
        """Return True if the time of a statement grew by more than it varies under a steady load."""
        old, new = self.spent_ms
        return self.statements[statement].growth("ms") >= max(LEAST_MS, LEAST_SHARE * max(old, new))

    def statements_of_table(self, name: str, *, slower: bool = True) -> frozenset[Key]:
        """Return the statements that name a table; with `slower`, only those that became slower."""
        word = name.rpartition(".")[2].lower()
        some: Collection[Key] = self.statements_by_word.get(word, ())
        if not _WORD.fullmatch(word):
            sought = re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])", re.I)
            some = [number for number, one in self.statements.items() if sought.search(one.text)]
        return frozenset(number for number in some if not slower or self.statements[number].is_slower())

    def heavier_statements_of_table(self, name: str) -> frozenset[Key]:
        """Return the statements that name a table and do more work per call, or take longer, than before."""
        named = self.statements_of_table(name, slower=False)
        return frozenset(n for n in named if self.statements[n].is_heavier() or self.statements[n].is_slower())

    def totals(self, view: str, *names: str, where: str = "true") -> tuple[dict[str, float], dict[str, float]]:
        """Return counters of a view as rates per second summed over its rows, before and after.

        Only counters that the view has in both periods are included. `where` is an SQL condition that selects the rows.
        """
        has = {n for n in names if self.is_in_both(view) and n in self.before.columns(view) & self.after.columns(view)}
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

    def read_sums(
        self, interval: Interval, key: str, sums: Iterable[tuple[str, str, float]], where: str, texts: dict[Key, str]
    ) -> dict[Key, Rates]:
        """Return the rates of statements by a column of their view, and add the texts to `texts`.

        `sums` are the values added up: name, column and divisor.
        """
        if not interval.has(self.view):
            return {}
        summed = ", ".join(f"sum({column}) / {divisor} as {name}" for name, column, divisor in sums)
        rows = interval.query(f"select {key} as key, {summed} from {self.view} where {where} group by 1", self.view)
        texts.update(statement_texts(interval).items())
        return {str(row.pop("key")): rates(row, interval.seconds) for row in rows}

    def rates_by_name(self, *views: tuple[str, str]) -> tuple[Rates, Rates]:
        """Return the rates per second of named counters, before and after; `views` are (view, column of the name)."""
        sides = []
        for one in (self.before, self.after):
            found: Rates = {}
            for view, name in views:
                if one.has(view):
                    rows = one.query(f"select {name} as name, value from {view} where value is not null", view)
                    found |= {row["name"]: float(row["value"]) / one.seconds for row in rows}
            sides.append(found)
        return sides[0], sides[1]

    def is_in_both(self, view: str) -> bool:
        """Return True if a view was read in both periods."""
        return self.before.has(view) and self.after.has(view)

    def rows_of_ends(self, view: str, sql: str) -> list[Row]:
        """Return the rows of a query on a view at the beginning and at the end; empty if a period lacks the view.

        `{before}` in the query stands for the view at the beginning of the first period, `{after}` for the view at the
        end of the second.
        """
        if not self.is_in_both(view):
            return []
        before, after = self.before.ends(view)[0], self.after.ends(view)[1]
        return self.before.query(sql.replace("{before}", before).replace("{after}", after))

    @property
    def was_restarted(self) -> bool:
        """Return True if the server was restarted between the first snapshot and the last one of both periods."""
        return self.was_started_between(self.before.before, self.after.after)

    @classmethod
    def was_started_between(cls, first: Snapshot, second: Snapshot) -> bool:
        """Return True if the server was started between two snapshots; False if a start time is not known."""
        old, new = first.steady_facts.get("started_us"), second.steady_facts.get("started_us")
        return bool(old and new and abs(new - old) > cls.jitter_us)

    def setting(self, name: str) -> tuple[str | None, str | None]:
        """Return a setting's values at the start of the first period and the end of the second; None if not known."""
        view, column = self.settings_view
        found: list[str | None] = []
        for end, one in enumerate((self.before, self.after)):
            sql = f"select {column} as value from {one.ends(view)[end]} where name = {literal(name)}"
            rows = one.query(sql) if one.has(view) else []
            found.append(str(rows[0]["value"]) if rows else None)
        return found[0], found[1]

    def changed_settings(self, ignored: Iterable[str] = ()) -> list[dict[str, object]]:
        """Return `name`, `old` and `new` of settings, except `ignored`, that changed.

        The old value is from the beginning of the first period, the new value from the end of the second.
        """
        view, column = self.settings_view
        kept = f"and name not in ({', '.join(map(literal, ignored))})" if ignored else ""
        return self.rows_of_ends(
            view,
            f"select name, a.{column} as old, b.{column} as new from {{before}} a join {{after}} b using (name)"
            f" where a.{column} is distinct from b.{column} {kept} order by name",
        )


def rates(row: TableRow, seconds: float) -> Rates:
    """Return the counts of a row as rates per second; a missing count is 0."""
    return {name: float(value or 0) / seconds for name, value in row.items()}
