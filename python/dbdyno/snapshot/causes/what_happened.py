"""The ranked section "What happened" at the top of a report and a comparison."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import ClassVar

from dbdyno.base.explanation import MOST as CAUSES_MOST
from dbdyno.base.explanation import CausalExplanation
from dbdyno.base.explanation import Cause as Reason
from dbdyno.base.sections import Part, Row, columns, section, table
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.causes import statements
from dbdyno.snapshot.causes.change import LEAST_MS, Cause, Change, Key
from dbdyno.snapshot.reading.ends import relation
from dbdyno.snapshot.reading.events_table import events_table
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import long_events
from dbdyno.snapshot.reading.statement_texts import KEYS, statement_texts
from dbdyno.snapshot.wording import rate_change, three_digits, time_change

MOST = 5
LEAST_UNEXPLAINED = 0.005
"""Smallest unexplained share of a change that is reported."""
LEAST_PARTS = 6
"""Smallest number of sub-intervals for an interval to be searched for a change inside it."""
LEAST_CHANGE = 0.2
"""Relative change of statement time below which it counts as steady."""

JUMP_LEAST = 5
NO_CHANGE = "no change to explain: where the time went is under Active sessions, Waits and Top SQL"

CODES = {
    "dropped_indexes": "index",
    "lost_indexes": "index",
    "new_indexes": "index",
    "other_plans": "plan",
    "other_access_paths": "plan",
    "indirect_scans": "plan",
    "sparser_tables": "growth",
    "larger_values": "growth",
    "proved_flips": "plan",
    "generic_flips": "plan",
    "plan_flips": "plan",
    "grown_tables": "growth",
    "bloated_tables": "bloat",
    "spills": "spill",
    "slow_temporary_files": "device",
    "dropped_statistics": "plan",
    "compiled_statements": "jit",
    "lost_workers": "workers",
    "smaller_sequence_caches": "sequence",
    "connections": "sessions",
    "waits_for_standbys": "standby",
    "late_standbys": "standby",
    "slow_syncs": "device",
    "slow_log": "device",
    "slow_reads": "device",
    "lock_waits": "lock",
    "checkpoints": "checkpoint",
    "restarts": "cache",
    "buffer_pool": "cache",
    "busy_processors": "processor",
    "settings": "setting",
    "stored_settings": "setting",
    "function_settings": "setting",
    "unpurged_versions": "version",
    "redo_log": "log",
    "space_waits": "log",
    "new_statements": "statement",
    "more_calls": "calls",
    "slower_statements": "slower",
}
"""Code of each cause, by the name of its rule; runs use the same code for a cause with the same meaning."""
_SHOWN = columns("what:text share:ratio:of_the_change evidence:text when:text")


class _Engines(Mapping[str, tuple[type[Change], tuple[ModuleType, ...]]]):
    """The engines by name; the rules of an engine are imported when they are first needed."""

    _names: ClassVar = {"postgres": "PostgresChange", "mariadb": "MariadbChange", "oracle": "OracleChange"}

    def __getitem__(self, name: str) -> tuple[type[Change], tuple[ModuleType, ...]]:
        module = import_module(f"dbdyno.snapshot.causes.{name}") if name in self._names else None
        if module is None:
            raise KeyError(name)
        return getattr(module, self._names[name]), module.FAMILIES

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


ENGINES = _Engines()
"""The subclass of `Change` and the modules of rules for each engine that has rules."""


def change_of(before: Interval, after: Interval) -> Change:
    """Return the change between two intervals, for an engine in `ENGINES`."""
    return ENGINES[before.before.engine][0](before, after)


def causes(change: Change) -> list[Cause]:
    """Return all causes, sorted by falling share; direct causes come first among causes with the same share.

    An indirect cause is left out if direct causes explain all of its statements.
    """
    return change.compute_once("causes", lambda: _causes(change))


def _causes(change: Change) -> list[Cause]:
    families = (*ENGINES[change.before.before.engine][1], statements)
    found = [
        replace(cause, code=CODES.get(rule.__name__, rule.__name__))
        for family in families
        for rule in family.RULES
        for cause in rule(change)
    ]
    explained = frozenset[Key]().union(*(c.statements for c in found if c.direct))
    kept = [c for c in found if c.direct or not c.statements <= explained]
    return sorted(kept, key=lambda c: -_score(change, c))


def _score(change: Change, cause: Cause) -> float:
    share = change.share(cause.statements) if cause.statements else None
    return cause.weight * (0.3 if share is None else share) - (0 if cause.direct else 0.001)


@dataclass(frozen=True, slots=True)
class ReportedCause:
    """A cause as reported: with the share that no earlier cause explains, and other causes of the same statements."""

    cause: Cause
    share: float | None
    also: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """Return the evidence, followed by the other causes of the same statements."""
        return "; ".join(filter(None, (self.cause.evidence, *(f"also: {one}" for one in self.also))))


def reported_causes(change: Change, ranked: Sequence[Cause]) -> list[ReportedCause]:
    """Return the causes with shares that add up to at most 1.

    If two causes explain the same part of the change, it counts for the first. A cause that explains nothing more than
    earlier ones is reported as part of the one with which it shares most statements.
    """
    found: list[ReportedCause] = []
    seen: frozenset[Key] = frozenset()
    for one in ranked:
        rest = one.statements - seen
        if one.statements and not rest:
            at = max(range(len(found)), key=lambda at: len(found[at].cause.statements & one.statements))
            found[at] = replace(found[at], also=(*found[at].also, one.words))
            continue
        found.append(ReportedCause(one, change.share(rest) if one.statements else None))
        seen |= one.statements
    return found


def causes_section(change: Change, about: str = "") -> Part:
    """Return the section with the first `MOST` causes and the part of the change that they leave unexplained."""
    ranked = causes(change)
    reported = reported_causes(change, ranked)
    rows: list[Row] = [
        {"what": one.cause.words, "share": one.share, "evidence": one.evidence, "when": one.cause.when}
        for one in reported
    ]
    every = frozenset[Key]().union(*(one.cause.statements for one in reported[:MOST]))
    notes = [describe_time_change(change, ranked)]
    known = change.share(every)
    if known is not None and ranked and 1 - known >= LEAST_UNEXPLAINED:
        notes.append(f"{1 - known:.0%} of the change is not explained by these")
    if change.slept_ms >= LEAST_MS:
        notes.append(
            f"{three_digits(change.slept_ms)} ms a second of sleeping statements are left out: not database time"
        )
    notes += change.remarks()
    made = section("happened", "What happened", [table("", _SHOWN, rows, top=MOST)], about=about, notes=notes)
    made["why"] = explanation_of_change(change, reported, about, describe_time_change(change, ranked)).as_dict()
    return made


def explanation_of_change(
    change: Change, reported: Sequence[ReportedCause], about: str, withheld: str
) -> CausalExplanation:
    """Return the first causes of the change in statement time per second, in the form that runs and traces use."""
    if not change.is_in_both(change.view):
        return CausalExplanation(about, "ratio", None, withheld=withheld)
    named = [one for one in reported if one.cause.code != "setting" or one.share][:CAUSES_MOST]
    reasons = tuple(
        Reason(
            one.cause.code,
            "",
            one.cause.words + (f" ({one.cause.when})" if one.cause.when else ""),
            None,
            share=one.share,
            evidence=(one.evidence,) if one.evidence else (),
        )
        for one in named
    )
    known = change.share(frozenset[Key]().union(*(one.cause.statements for one in named)))
    before, after = change.spent_ms
    return CausalExplanation(
        about,
        "ratio",
        after - before,
        before,
        after,
        causes=reasons,
        rest_share=None if known is None else 1 - known,
        withheld="" if reasons else "no rule found a cause",
    )


def describe_time_change(change: Change, ranked: list[Cause]) -> str:
    """Return the change of statement time in words: its amount, the statement that changed most, the first cause."""
    if not change.is_in_both(change.view):
        return f"statement times are not known: {change.view} was not read"
    old, new = change.spent_ms
    if not ranked and _steady(old, new, LEAST_MS):
        return f"statement time was steady: {three_digits(old)} and {three_digits(new)} ms a second"
    words = f"{'+' if change.growth_ms > 0 else ''}{three_digits(change.growth_ms)} ms of statement time a second"
    first = max(change.statements.items(), key=lambda item: item[1].growth("ms"), default=None)
    if change.growth_ms > 0 and first is not None:
        words += f", of it {change.share([first[0]]) or 0:.0%} {statements.statement_label(first[1])}"
    elif change.growth_ms < 0:
        words += _fallen(change)
    if ranked:
        named = (ranked[0].words if ranked[0].direct else "", ranked[0].evidence)
        words += "; " + "; ".join(filter(None, named))
    return words


def _fallen(change: Change) -> str:
    """Return in words which statement's time fell most, and the change in its calls and its time per call."""
    least = min(change.statements.values(), key=lambda one: one.growth("ms"))
    every = sum(min(one.growth("ms"), 0.0) for one in change.statements.values())
    words = f", of the fall {least.growth('ms') / every:.0%} {statements.statement_label(least)}: "
    old, new = least.before.get("calls", 0.0), least.after.get("calls", 0.0)
    if not new:
        return words + "no call ended after that"
    return words + f"calls {rate_change(old, new)}, mean {time_change(*least.per_call('ms'))}"


def cut_of(interval: Interval) -> int | None:
    """Return the index of the snapshot at which an interval's load changed most; None if it was steady or too short."""
    found = _cut_in_words(interval)
    return None if found is None else found[0]


def change_at(interval: Interval, at: int) -> Change:
    """Return the change between the two parts of an interval; `at` is the index of the snapshot between them."""
    return interval.compute_once(f"change {at}", lambda: change_of(*interval.halves(at)))


def _cut_in_words(interval: Interval) -> tuple[int | None, str] | None:
    """Return the cached result of `_where` (index of the cut, reason in words); None if the interval is too short."""

    def searched() -> tuple[int | None, str] | None:
        found = _series(interval)
        return None if found is None else _where(interval, *found, _jumps(interval))

    return interval.compute_once("cut", searched)


def causes_within(interval: Interval) -> Part | None:
    """Return the section on what happened inside an interval, or None if its engine has no rules."""
    found = _cut_in_words(interval)
    if found is None:
        return _unsearched(interval)
    at, how = found
    if at is None:
        return section("happened", "What happened", about=f"{how}.", notes=[NO_CHANGE])
    chain = interval.chain
    about = f"{how} {chain[at].number} ({chain[at].at_utc:%H:%M:%S} UTC): the time before it, compared with that after."
    return causes_section(change_at(interval, at), about)


def _unsearched(interval: Interval) -> Part | None:
    """Return a section with the events of an interval that is not searched for causes, and the reason."""
    rules = ENGINES.get(interval.before.engine)
    if rules is None:
        return None
    count, view = len(interval.chain) - 1, rules[0].view
    why = f"not all of {count} sub-intervals can be distinguished"
    if not interval.has(view):
        why = f"{view} was not read"
    elif count < LEAST_PARTS:
        few = "one sub-interval has" if count == 1 else f"{count} sub-intervals are too few for"
        why = f"{few} {'no' if count == 1 else 'a'} before and after (at least {LEAST_PARTS} are needed);"
        why += " dbdyno compare snap:1..2 snap:3..4 compares two periods"
    found = long_events(interval)
    tables = [events_table(found)] if found else []
    return section("happened", "What happened", tables, notes=[f"the causes were not searched for: {why}"])


Series = list[tuple[float, float]]
"""An amount and a duration in seconds for each sub-interval."""


def _where(interval: Interval, spent: Series, calls: Series, jumps: dict[str, Series]) -> tuple[int | None, str]:
    """Return the index of the snapshot at which to cut an interval, and the reason in words; None if load was steady.

    The first of these that applies:

    - a restart, if statement time was steady or changed within one sub-interval of it;
    - a jump of a counter in `jumps`, if it is far larger than that of statement time;
    - a change of settings within one sub-interval of the largest change in statement time;
    - the largest change in statement time, unless it was steady;
    - the largest change in the rate of calls, because no statement's time includes a wait between statements (commit,
      login).
    """
    at, old, new = _cut(spent)
    steady = _steady(old, new, LEAST_MS)
    how = "was steady: {} and {} ms a second at its two parts" if steady else "went from {} to {} ms a second"
    how = f"Statement time {how.format(three_digits(old), three_digits(new))}"
    restart = _restart(interval)
    if restart is not None and (steady or abs(restart - at) <= 1):
        return restart, f"{how}; the server was restarted after snapshot"
    jump = _jump(jumps, _ratio(old, new))
    if jump is not None:
        return jump[0], f"{how}; {jump[1]} at snapshot"
    if not steady:
        changed = _set_beside(interval, at)
        if changed is not None and changed != at:
            return changed, f"{how}; a setting was changed after snapshot"
        return at, f"{how} at snapshot"
    at, old, new = _cut(calls)
    return (
        (None, how)
        if _steady(old, new)
        else (at, f"{how}; calls went from {three_digits(old)} to {three_digits(new)} at snapshot")
    )


def _steady(old: float, new: float, least: float = 0.0) -> bool:
    return abs(new - old) < max(LEAST_CHANGE * max(old, new), least)


def _ratio(old: float, new: float) -> float:
    return max(old, new) / max(min(old, new), 1e-9)


def _jump(jumps: dict[str, Series], least: float) -> tuple[int, str] | None:
    """Return where the fastest-growing counter rose, and its rates in words; None if no counter grew enough.

    Enough is at least 3-fold and at least `2 * least`.
    """
    cuts = {what: _cut(values) for what, values in jumps.items()}
    grown = {what: _ratio(old, new) for what, (_, old, new) in cuts.items() if new > old}
    what = max(grown, key=lambda one: grown[one], default="")
    if not what or grown[what] < max(3.0, 2 * least):
        return None
    at, old, new = cuts[what]
    return at, f"{what} went from {three_digits(old)} to {three_digits(new)} a second"


def _jumps(interval: Interval) -> dict[str, Series]:
    """Return the counters in the engine's `jumps` by sub-interval, if they counted at least `JUMP_LEAST` in total."""
    parts = list(interval.sums.parts())
    found: dict[str, Series] = {}
    for view, column, which, what in ENGINES[interval.before.engine][0].jumps:
        source, known = interval.sums.relation(view, folded=False)
        if source and column in {c.name for c in known}:
            rows = interval.query(f"select part, sum({column})::double as n from {source} where {which} group by 1")
            counts = {row["part"]: row["n"] or 0.0 for row in rows}
            if sum(counts.values()) >= JUMP_LEAST:
                found[what] = [(counts.get(p["number"], 0.0), p["elapsed_ns"] / 1e9) for p in parts]
    return found


def _restart(interval: Interval) -> int | None:
    """Return the index of the last snapshot before the first restart, if at least two precede it; otherwise None."""
    chain, kind = interval.chain, ENGINES[interval.before.engine][0]
    at = next((at for at, one in enumerate(chain) if kind.was_started_between(chain[0], one)), 0)
    return at - 1 if at > 1 else None


def _set_beside(interval: Interval, at: int) -> int | None:
    """Return `at` or its neighbour, after which snapshot settings changed; None unless exactly one of them fits.

    On a busy machine the times of sub-intervals locate an event only approximately.
    """
    view, column = ENGINES[interval.before.engine][0].settings_view
    chain = interval.chain

    def changed(step: int) -> bool:
        one, other = chain[step], chain[step + 1]
        if one.place(view) == other.place(view) or None in (one.place(view), other.place(view)):
            return False
        sides = (f"(select name, {column} as value from {relation(end, view)})" for end in (one, other))
        sql = "select 1 from {} a join {} b using (name) where a.value is distinct from b.value limit 1"
        return bool(interval.query(sql.format(*sides)))

    found = [step for step in (at - 1, at, at + 1) if 1 < step < len(chain) - 2 and changed(step)]
    return found[0] if len(found) == 1 else None


def _series(interval: Interval) -> tuple[Series, Series] | None:
    """Return statement time in ms and the number of calls by sub-interval; None if they cannot be compared."""
    rules = ENGINES.get(interval.before.engine)
    if rules is None or len(interval.chain) <= LEAST_PARTS or not interval.has(rules[0].view):
        return None
    parts = list(interval.sums.parts())
    source, known = interval.sums.relation(rules[0].view, folded=False)
    if not source or len(parts) != len(interval.chain) - 1:
        return None
    time, to_ms = next(one for one in rules[0].times if one[0] in {c.name for c in known})
    rows = interval.query(
        f"select part, sum({time}) * {to_ms} as ms, sum({rules[0].calls}) as calls from {source}"
        f" where {_awake(interval, rules[0])} group by 1"
    )
    found = {row["part"]: row for row in rows}
    spent, calls = (
        [(float(found.get(p["number"], {}).get(name) or 0), p["elapsed_ns"] / 1e9) for p in parts]
        for name in ("ms", "calls")
    )
    return spent, calls


def _awake(interval: Interval, rules: type[Change]) -> str:
    """Return the SQL condition that selects statements that do not sleep."""
    asleep = [key for key, text in statement_texts(interval).items() if rules.sleep.search(text)]
    if not asleep:
        return "true"
    return f"{KEYS[interval.before.engine]}::varchar not in ({', '.join(map(literal, asleep))})"


def _cut(values: Series) -> tuple[int, float, float]:
    """Return the sub-interval at whose beginning the mean changed most, and the means per second on both sides."""
    at = change_point([value / seconds for value, seconds in values])
    old, new = (sum(v for v, _ in some) / sum(s for _, s in some) for some in (values[:at], values[at:]))
    return at, old, new


def change_point(rates: list[float]) -> int:
    """Return the index at which the mean of the logarithms changes most, at least two from either end.

    Logarithms are used so that a burst weighs no more than its ratio to the other values. Differences near zero are
    ignored.
    """
    least = 0.02 * sum(rates) / len(rates) or 1.0
    sums = list(itertools.accumulate((math.log(max(rate, 0.0) + least) for rate in rates), initial=0.0))
    count = len(rates)

    def weight(at: int) -> float:
        old, new = sums[at] / at, (sums[-1] - sums[at]) / (count - at)
        return abs(new - old) * math.sqrt(at * (count - at))

    return max(range(2, count - 1), key=weight)
