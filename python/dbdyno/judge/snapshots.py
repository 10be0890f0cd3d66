"""Comparison of two periods of snapshots: verdict, what happened, metrics, objects, and changes of the server.

Each period is cut at its snapshots; every sub-interval gives one value of each metric. The verdict is about what users
wait for (`verdict.py`); metrics and objects are findings below it. The median of a period has an order-statistic
interval. The ratio of a metric and its interval come from Welch's t on the logarithms, widened for autocorrelation; if
a metric can be zero, only the rank test is used. The page also shows the probability that a value of the second period
is larger (Mann and Whitney). All metrics share one false discovery rate.

A changed setting, version, index or plan is a candidate cause. Two different servers are not comparable: their numbers
are shown, but nothing is decided unless the user says that the two servers are under test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Part, Row, columns, section, table
from dbdyno.evidence.memory import file_connection, row_dicts
from dbdyno.judge.blocked_time import failed_transactions
from dbdyno.judge.metric_tests import compare_metrics, decision
from dbdyno.judge.object_tests import object_section
from dbdyno.judge.period_facts import facts_of
from dbdyno.judge.verdict import LEAST, Facts, Verdict, judge
from dbdyno.snapshot.causes import ENGINES, causes_section, change_of
from dbdyno.snapshot.reading.active_rates import active_rates
from dbdyno.snapshot.reading.changed_settings import changed_settings
from dbdyno.snapshot.reading.changes import changes
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import chart_events, long_events
from dbdyno.snapshot.reading.periods import Period
from dbdyno.snapshot.reading.series import POINTS, Series, chart_data, hourly_series, series, thin_out
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.report import SCHEMA, facts_of_end
from dbdyno.snapshot.store.folder import Store

_OF_SERVER = {"version": "version", "databases read": "databases", "standby": "in_recovery"}
LONG_S = 2 * 86400
"""If both periods are at least this long [s], values are per hour, because the minutes of a day are too much alike."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Options of a comparison.

    Attributes:
        threshold: Smallest relative difference that matters.
        allowed: False if the periods are not comparable, so that nothing is decided.
        by_hour: True for one value per hour instead of per sub-interval.
        closed_loop: True if the load is a closed loop.
    """

    threshold: float
    allowed: bool
    by_hour: bool
    closed_loop: bool


@dataclass(slots=True)
class _Found:
    """Results from two periods: the first section, the section by object, all events, and the verdict's facts."""

    first: list[Part]
    objects: list[Part]
    events: list[Row]
    facts: Facts


def compare(
    store: Store,
    first: Period,
    second: Period,
    *,
    threshold: float = 0.02,
    decide: bool = False,
    closed_loop: bool = False,
) -> JsonObject:
    """Return the model of a comparison of two periods.

    Args:
        store: The store of the snapshots.
        first: The first period.
        second: The second period.
        threshold: Largest relative change of database time for the same work that counts as no change.
        decide: True to decide even if the periods are of two servers.
        closed_loop: True if the load came from sessions that never pause, so that throughput is a result of the server.

    Raises:
        SnapshotError: The periods are of two engines.
    """
    if first.chain[0].engine != second.chain[0].engine:
        raise SnapshotError(
            f"{first.name} is a period of {first.chain[0].engine}, but {second.name} is a period of "
            f"{second.chain[0].engine}",
            next_step="compare two periods of one engine",
        )
    differing = differences(first, second)
    sums = [Chain(store, part.chain, Interval) for part in (first, second)]  # read once for all uses
    by_hour = all(_seconds(part_sums) >= LONG_S for part_sums in sums)
    given = (_series(store, first, sums[0], by_hour=by_hour), _series(store, second, sums[1], by_hour=by_hour))
    two_servers = first.chain[0].target != second.chain[0].target
    asked = _Asked(threshold, decide or not two_servers, by_hour, closed_loop)
    rows = _rows(given[0], given[1], asked)
    counts = (_usable(given[0]), _usable(given[1]))
    found = _find_changes(store, (first, second), sums, given, asked, counts, rows)
    for part_sums in sums:
        part_sums.close()
    verdict = judge(found.facts, threshold) if asked.allowed else _incomparable(first, second)
    return {
        "schema": SCHEMA,
        "kind": "snapshot",
        "page": "compare",
        "facts": {
            "title": f"{first.name} against {second.name}",
            "engine": first.chain[0].engine,
            "version": second.chain[-1].facts.get("version"),
            "first": facts_of_end(first.chain[0]),
            "last": facts_of_end(second.chain[-1]),
            "periods": [f"{part.name}: {_times(part)}" for part in (first, second)],
        },
        "verdict": verdict.as_dict(),
        "why": [part.pop("why") for part in found.first if "why" in part],
        "sections": [
            *found.first,
            _metrics(first, second, rows, counts, threshold, by_hour=by_hour),
            *found.objects,
            _changes(store, first, second, differing),
        ],
        "warnings": _warnings((first, second), counts),
        "series": _chart_data((first, second), given, found.events),
    }


def _warnings(parts: tuple[Period, Period], counts: tuple[int, int]) -> list[dict[str, str]]:
    """Return a warning for each period that has too few sub-intervals."""
    return [
        {
            "code": "snapshot.few",
            "text": f"{part.name} has {count} sub-interval{'' if count == 1 else 's'}: too few for a verdict",
            "next": f"take at least {LEAST + 1} snapshots in each period: dbdyno snap watch",
        }
        for part, count in zip(parts, counts, strict=True)
        if count < LEAST
    ]


def _changes(store: Store, first: Period, second: Period, differing: list[Difference]) -> Part:
    """Return the section with objects, settings and versions that were added, removed or changed."""
    of_server = [row for row in differing if row["what"] in _OF_SERVER]
    rows: list[Row] = [{"kind": "server", "change": "differs", **row} for row in of_server]
    notes: list[str] = []
    if first.chain[0].target == second.chain[0].target:
        found, notes = changes(store, first, second)
        rows += found
    else:
        rows += [{"kind": "setting", "change": "differs", **row} for row in differing if row not in of_server]
    shown = columns("kind:text what:text change:text first:text second:text when:text:between")
    return section(
        "settings",
        "What was added, removed or changed",
        [table("", shown, rows)],
        about="From the first snapshot of the earlier period to the last of the later one; changes that were undone in "
        "between are left out.",
        notes=notes if rows else ["nothing was added, removed or changed", *notes],
    )


def _chart_data(parts: tuple[Period, Period], given: tuple[Series, Series], events: list[Row]) -> dict[str, object]:
    """Return the data of both periods for the chart over time."""
    thin = [thin_out(one, POINTS // 2) for one in given]
    spans = [
        {
            "name": part.name,
            "from_us": one.at_us[0] - round(one.seconds[0] * 1e6),
            "to_us": one.at_us[-1],
            "points": len(one.at_us),
        }
        for part, one in zip(parts, thin, strict=True)
        if one.at_us
    ]
    return {**chart_data(thin), "periods": spans, "events": events}


def _seconds(sums: Chain) -> float:
    """Return the total length of the sub-intervals [s]."""
    return float(sum(part["elapsed_ns"] for part in sums.parts())) / 1e9


def _series(store: Store, part: Period, sums: Chain, *, by_hour: bool) -> Series:
    found = series(store, part.chain, sums)
    return hourly_series(found) if by_hour else found


def _find_changes(
    store: Store,
    parts: tuple[Period, Period],
    sums: Sequence[Chain],
    given: tuple[Series, Series],
    options: _Asked,
    counts: tuple[int, int],
    rows: list[Row],
) -> _Found:
    """Collect what changed between the periods and why, by object, with the events of both periods.

    If there are no rules for the engine, or the periods are of two servers (whose objects have other identifiers), only
    the metrics are used.
    """
    one, other = parts
    closed = _closed_loop_decision(rows) if options.closed_loop else ""
    if one.chain[0].engine not in ENGINES or one.chain[0].target != other.chain[0].target:
        broken = failed_transactions([side.values for side in given])
        unread = "statements of two servers, or of an engine without rules, are not matched"
        return _Found([], [], [], Facts(counts, failed=broken, unread=unread, closed=closed))
    with (
        Interval(store, one.chain[0], one.chain[-1], one.chain, sums=sums[0]) as before,
        before.inner_connection() as connection,
        Interval(store, other.chain[0], other.chain[-1], other.chain, connection=connection, sums=sums[1]) as after,
    ):
        about = f"{other.name} against {one.name}, summed over each: {_times(one)}, then {_times(other)}."
        looked = tuple(active_rates(side, hourly=options.by_hour) for side in (before, after))
        objects = object_section(
            before, after, looked, threshold=options.threshold, allowed=options.allowed, hourly=options.by_hour
        )
        told = [row for side in (before, after) for row in chart_events(long_events(side))]
        change = change_of(before, after)
        facts = facts_of(
            change, looked, [side.values for side in given], counts, by_hour=options.by_hour, closed=closed
        )
        return _Found([causes_section(change, about)], [objects], told, facts)


def _closed_loop_decision(rows: list[Row]) -> str:
    """Return the decision on the throughput of a closed loop: "better", "worse" or empty."""
    found = next((row["decision"] for row in rows if row["name"] == "tps"), "")
    return {"more": "better", "less": "worse"}.get(found, "")


def _times(part: Period) -> str:
    """Return the target, start and end of a period as text."""
    first, last = part.chain[0], part.chain[-1]
    day = "" if first.at_utc.date() == last.at_utc.date() else f"{last.at_utc:%Y-%m-%d} "
    return f"{first.target} from {first.at_utc:%Y-%m-%d %H:%M:%S} to {day}{last.at_utc:%H:%M:%S} UTC"


def _metrics(
    first: Period,
    second: Period,
    rows: list[dict[str, object]],
    counts: tuple[int, int],
    threshold: float,
    *,
    by_hour: bool,
) -> Part:
    shown = columns(
        "metric:text decision:text ratio:change:change low:change:from high:change:to"
        " a:number:first_median b:number:second_median q:p chance:ratio:second_larger"
        " a_low:number:first_from a_high:number:first_to"
        " b_low:number:second_from b_high:number:second_to"
    )
    return section(
        "metrics",
        "Metrics",
        [table("", shown, rows)],
        about=f"{first.name}: {counts[0]} {'hours' if by_hour else 'sub-intervals'}, {second.name}: {counts[1]}."
        " change: second against first, geometric means. second larger: the chance that a sub-interval of the"
        " second has the larger value (50 %: no effect). q: p after false-discovery control over"
        f" these metrics. Changes within {threshold * 100:.3g} % count as none.",
    )


def _rows(a: Series, b: Series, options: _Asked) -> list[Row]:
    from dbdyno.stats.decide import benjamini_hochberg

    known = {metric.name: metric for metric in b.metrics}
    rows = compare_metrics(
        [(metric, _values(a, metric.name), _values(b, metric.name)) for metric in a.metrics if metric.name in known]
    )
    judged = [row for row in rows if row["p"] is not None]
    for row, q in zip(judged, benjamini_hochberg([row["p"] for row in judged]), strict=True):
        row["q"] = q
        row["decision"] = decision(row, q, options.threshold) if options.allowed else "not comparable"
    return rows


def _values(part: Series, name: str) -> list[float]:
    return [value for value in part.values[name] if value is not None]


def _usable(part: Series) -> int:
    return max((len(_values(part, metric.name)) for metric in part.metrics), default=0)


class Difference(TypedDict):
    """A setting, a version or the list of databases that differs between two periods."""

    what: str
    first: str | None
    second: str | None


def _incomparable(first: Period, second: Period) -> Verdict:
    """Return the verdict on two different servers, with sentences on what the page shows nevertheless."""
    names = f"{first.chain[0].target} and {second.chain[0].target}"
    said = (
        "Metrics of both are shown side by side; their statements and objects are not matched.",
        "Settings and versions that differ are listed below.",
    )
    step = "add --accept-differences if you compare the two servers on purpose"
    return Verdict("not comparable", f"Not comparable: {names} are two servers", said, step)


def differences(first: Period, second: Period) -> list[Difference]:
    """Return the version, databases, role and settings that differ between two periods."""
    found: list[Difference] = []
    every = [_facts(part) for part in (first, second)]
    seen = [{tuple(str(facts.get(n)) for n in _OF_SERVER.values()) for facts in part_facts} for part_facts in every]
    for at, label in enumerate(_OF_SERVER):
        values = [sorted({said[at] for said in side}) for side in seen]
        if values[0] != values[1]:
            found.append({"what": label, "first": ", ".join(values[0]), "second": ", ".join(values[1])})
    with file_connection() as connection:
        settings = changed_settings(first.chain[-1], second.chain[-1], lambda sql: row_dicts(connection.execute(sql)))
    return [*found, *[Difference(what=name, first=old, second=new) for name, old, new in settings]]


def _facts(part: Period) -> Iterable[Mapping[str, object]]:
    """Return the distinct facts of a period's snapshots, most of which share the same facts."""
    return {id(facts): facts for facts in (end.steady_facts for end in part.chain)}.values()
