"""What happened, ranked: the section that opens a report and a comparison."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from dbdyno.base.why import MOST as CAUSES_MOST
from dbdyno.base.why import Cause as Reason
from dbdyno.base.why import Why
from dbdyno.snapshot.causes import mariadb, oracle, postgres, statements
from dbdyno.snapshot.causes.change import LEAST_MS, Cause, Change, Key
from dbdyno.snapshot.model import Part, Row, columns, section, table
from dbdyno.snapshot.reading.ends import relation
from dbdyno.snapshot.reading.events_table import clock
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import happenings
from dbdyno.snapshot.reading.statement_costs import KEYS
from dbdyno.snapshot.store.parquet import literal
from dbdyno.snapshot.wording import rate, three, times

MOST = 5
LEAST_UNEXPLAINED = 0.005
"""Smallest unexplained share of a change that is reported."""
LEAST_PARTS = 6
"""Sub-intervals that an interval needs, to be searched for a change inside."""
LEAST_CHANGE = 0.2
"""Statement time that changes by less is called steady."""

JUMP_LEAST = 5
NO_CHANGE = "no change to explain: where the time went is under Active sessions, Waits and Top SQL"

CODES = {
    "dropped_indexes": "index",
    "lost_indexes": "index",
    "new_indexes": "index",
    "other_plans": "plan",
    "other_ways": "plan",
    "scans_behind": "plan",
    "roomier_tables": "growth",
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
    "shorter_sequences": "sequence",
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
    "kept_settings": "setting",
    "function_settings": "setting",
    "versions": "version",
    "redo_log": "log",
    "room": "log",
    "new_statements": "statement",
    "more_calls": "calls",
    "slower_statements": "slower",
}
"""What a rule's causes are called, the same words as in runs where they mean the same."""
_SHOWN = columns("what:text share:ratio:of_the_change evidence:text when:text")


ENGINES: dict[str, tuple[type[Change], tuple[ModuleType, ...]]] = {
    "postgres": (postgres.PostgresChange, postgres.FAMILIES),
    "mariadb": (mariadb.MariadbChange, mariadb.FAMILIES),
    "oracle": (oracle.OracleChange, oracle.FAMILIES),
}
"""Engines that there are rules for: how a change is read, and the families of its own rules."""


def change_of(before: Interval, after: Interval) -> Change:
    """What rules look at, for an engine of `ENGINES`."""
    return ENGINES[before.before.engine][0](before, after)


def causes(change: Change) -> list[Cause]:
    """All causes, largest and most direct share first; a statement whose cause is known is left out."""
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
class Told:
    """A cause as it is told: with the share that no cause before it has, and what else explains the same statements."""

    cause: Cause
    share: float | None
    also: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """Its evidence, and the other causes of the same."""
        return "; ".join(filter(None, (self.cause.evidence, *(f"also: {one}" for one in self.also))))


def told_once(change: Change, ranked: Sequence[Cause]) -> list[Told]:
    """Return the causes with shares that add up to 1 at most: what two explain together is told with the first, and a
    cause that explains nothing beyond those before it is told beside the one that it shares most with."""
    found: list[Told] = []
    seen: frozenset[Key] = frozenset()
    for one in ranked:
        rest = one.statements - seen
        if one.statements and not rest:
            at = max(range(len(found)), key=lambda at: len(found[at].cause.statements & one.statements))
            found[at] = replace(found[at], also=(*found[at].also, one.words))
            continue
        found.append(Told(one, change.share(rest) if one.statements else None))
        seen |= one.statements
    return found


def happened(change: Change, about: str = "") -> Part:
    """The section of the first causes, with what they leave unexplained."""
    ranked = causes(change)
    told = told_once(change, ranked)
    rows: list[Row] = [
        {"what": one.cause.words, "share": one.share, "evidence": one.evidence, "when": one.cause.when} for one in told
    ]
    every = frozenset[Key]().union(*(one.cause.statements for one in told[:MOST]))
    notes = [budget(change, ranked)]
    known = change.share(every)
    if known is not None and ranked and 1 - known >= LEAST_UNEXPLAINED:
        notes.append(f"{1 - known:.0%} of the change is not explained by these")
    if change.slept_ms >= LEAST_MS:
        notes.append(f"{three(change.slept_ms)} ms a second of statements that sleep are left out: no database time")
    notes += change.remarks()
    made = section("happened", "What happened", [table("", _SHOWN, rows, top=MOST)], about=about, notes=notes)
    made["why"] = explained(change, told, about, budget(change, ranked)).as_dict()
    return made


def explained(change: Change, told: Sequence[Told], about: str, withheld: str) -> Why:
    """The first causes in the shape that runs and traces have: of the statement time that a second has more."""
    if not change.both(change.view):
        return Why(about, "ratio", None, withheld=withheld)
    named = [one for one in told if one.cause.code != "setting" or one.share][:CAUSES_MOST]
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
    return Why(
        about,
        "ratio",
        after - before,
        before,
        after,
        causes=reasons,
        rest_share=None if known is None else 1 - known,
        withheld="" if reasons else "no rule found a cause",
    )


def budget(change: Change, ranked: list[Cause]) -> str:
    """The change of database time in words: how much, whose, and the first cause."""
    if not change.both(change.view):
        return f"the time of statements is not known: {change.view} was not read"
    old, new = change.spent_ms
    if not ranked and _steady(old, new, LEAST_MS):
        return f"statement time was steady: {three(old)} and {three(new)} ms a second"
    words = f"{'+' if change.grown_ms > 0 else ''}{three(change.grown_ms)} ms of statement time a second"
    first = max(change.statements.items(), key=lambda item: item[1].grown("ms"), default=None)
    if change.grown_ms > 0 and first is not None:
        words += f", of it {change.share([first[0]]) or 0:.0%} {statements.named(first[1])}"
    elif change.grown_ms < 0:
        words += _fallen(change)
    if ranked:
        named = (ranked[0].words if ranked[0].direct else "", ranked[0].evidence)
        words += "; " + "; ".join(filter(None, named))
    return words


def _fallen(change: Change) -> str:
    """Whose time it is that went, and whether its calls went, or what a call takes."""
    least = min(change.statements.values(), key=lambda one: one.grown("ms"))
    every = sum(min(one.grown("ms"), 0.0) for one in change.statements.values())
    words = f", of the fall {least.grown('ms') / every:.0%} {statements.named(least)}: "
    old, new = least.before.get("calls", 0.0), least.after.get("calls", 0.0)
    if not new:
        return words + "no call of it ended any more"
    return words + f"calls {rate(old, new)}, mean {times(*least.per_call('ms'))}"


def cut_of(interval: Interval) -> int | None:
    """Return the place in the chain where an interval changed most; None where it is too short or was steady."""
    found = _series(interval)
    return None if found is None else _where(interval, *found, _jumps(interval))[0]


def within(interval: Interval) -> Part | None:
    """What happened inside of one interval: its two parts around the point of `_where`. None without rules for the
    engine."""
    series = _series(interval)
    if series is None:
        return _unsearched(interval)
    at, how = _where(interval, *series, _jumps(interval))
    if at is None:
        return section("happened", "What happened", about=f"{how}.", notes=[NO_CHANGE])
    chain = interval.chain
    with (
        Interval(interval.store, chain[0], chain[at], chain[: at + 1]) as before,
        Interval(interval.store, chain[at], chain[-1], chain[at:]) as after,
    ):
        about = f"{how} {chain[at].number} ({chain[at].at:%H:%M:%S} UTC): what is before it, against what is after."
        return happened(change_of(before, after), about)


def _unsearched(interval: Interval) -> Part | None:
    """The events of an interval that is searched for no causes, and why it is not."""
    rules = ENGINES.get(interval.before.engine)
    if rules is None:
        return None
    count, view = len(interval.chain) - 1, rules[0].view
    why = f"of {count} sub-intervals not all can be distinguished"
    if not interval.has(view):
        why = f"{view} was not read"
    elif count < LEAST_PARTS:
        few = "one sub-interval has" if count == 1 else f"{count} sub-intervals are too few for"
        why = f"{few} {'no' if count == 1 else 'a'} before and after (it takes {LEAST_PARTS});"
        why += " dbdyno compare snap:1..2 snap:3..4 sets one period against another"
    found = happenings(interval)
    tables = [clock(found)] if found else []
    return section("happened", "What happened", tables, notes=[f"not searched for causes: {why}"])


Series = list[tuple[float, float]]
"""By sub-interval: how much, and seconds."""


def _where(interval: Interval, spent: Series, calls: Series, jumps: dict[str, Series]) -> tuple[int | None, str]:
    """Where in the chain to cut, and why there: where statement time changed most; at a change of a setting beside
    that point; at a restart beside it, or while statement time was steady; where something of `jumps` changed far more
    than statement time did; else where the rate of calls changed most, because what waits between two statements (a
    commit, a login) is in no statement's time."""
    at, old, new = _cut(spent)
    steady = _steady(old, new, LEAST_MS)
    how = "was steady: {} and {} ms a second at its two parts" if steady else "went from {} to {} ms a second"
    how = f"Statement time {how.format(three(old), three(new))}"
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
        (None, how) if _steady(old, new) else (at, f"{how}; calls went from {three(old)} to {three(new)} at snapshot")
    )


def _steady(old: float, new: float, least: float = 0.0) -> bool:
    return abs(new - old) < max(LEAST_CHANGE * max(old, new), least)


def _ratio(old: float, new: float) -> float:
    """How many times the larger is the smaller."""
    return max(old, new) / max(min(old, new), 1e-9)


def _jump(jumps: dict[str, Series], least: float) -> tuple[int, str] | None:
    """Where what grew most of these grew, and what to say of it: at least threefold, and twice as far as `least`."""
    cuts = {what: _cut(values) for what, values in jumps.items()}
    grown = {what: _ratio(old, new) for what, (_, old, new) in cuts.items() if new > old}
    what = max(grown, key=lambda one: grown[one], default="")
    if not what or grown[what] < max(3.0, 2 * least):
        return None
    at, old, new = cuts[what]
    return at, f"{what} went from {three(old)} to {three(new)} a second"


def _jumps(interval: Interval) -> dict[str, Series]:
    """What an engine's causes count beside statements, by sub-interval, where there were a few."""
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
    """The last snapshot of the life that the chain begins with, where another life follows."""
    chain, kind = interval.chain, ENGINES[interval.before.engine][0]
    at = next((at for at, one in enumerate(chain) if kind.other_life(chain[0], one)), 0)
    return at - 1 if at > 1 else None


def _set_beside(interval: Interval, at: int) -> int | None:
    """The snapshot after which settings changed, where that is the one at a point or one beside it: on a busy machine
    the times of a sub-interval tell where something happened only so far. None where there are several, or none."""
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
    """Milliseconds of statements, and their calls, by sub-interval."""
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
    """The condition for statements that do not sleep, as SQL."""
    if interval.after.file("statement_texts") is None:
        return "true"
    key = KEYS[interval.before.engine]
    texts = interval.query(f"select {key} as key, query from {interval.ends('statement_texts')[1]}")
    asleep = [row["key"] for row in texts if rules.sleep.search(row["query"] or "")]
    return f"{key}::varchar not in ({', '.join(literal(str(one)) for one in asleep)})" if asleep else "true"


def _cut(values: Series) -> tuple[int, float, float]:
    """The sub-interval at whose beginning the mean changed most, and the means per second at both sides."""
    at = change_point([value / seconds for value, seconds in values])
    old, new = (sum(v for v, _ in some) / sum(s for _, s in some) for some in (values[:at], values[at:]))
    return at, old, new


def change_point(rates: list[float]) -> int:
    """Where the mean of the logarithms changes most, at least two from either end: a burst in a busy stretch
    weighs no more than its ratio. Near zero differences count for nothing."""
    least = 0.02 * sum(rates) / len(rates) or 1.0
    sums = list(itertools.accumulate((math.log(max(rate, 0.0) + least) for rate in rates), initial=0.0))
    count = len(rates)

    def weight(at: int) -> float:
        old, new = sums[at] / at, (sums[-1] - sums[at]) / (count - at)
        return abs(new - old) * math.sqrt(at * (count - at))

    return max(range(2, count - 1), key=weight)
