"""Two periods laid side by side: is one of them really different, and by how much?

Each period is cut at its snapshots; every sub-interval gives one value of each metric. The median
of a period has the interval between order statistics. The ratio and its interval come from Welch's
t on the logarithms, widened where neighbours in time resemble each other; where a metric can be
zero, the rank test speaks alone. Beside it stands the chance that a value of the second period is
the larger (Mann and Whitney), and all metrics share one false-discovery rate.

Periods under other settings, versions or databases are not comparable: numbers are shown, nothing
is decided, unless the user says that this is what is being compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from dbdyno.errors import SnapshotError
from dbdyno.evidence.memory import for_files
from dbdyno.judge.by_object import by_object
from dbdyno.judge.compared import LEAST, compared, decision
from dbdyno.snapshot.causes import ENGINES, change_of, happened
from dbdyno.snapshot.changes import changes
from dbdyno.snapshot.happenings import drawable, happenings
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.model import Part, Row, columns, section, table
from dbdyno.snapshot.periods import Period
from dbdyno.snapshot.report import SCHEMA, facts_of_end
from dbdyno.snapshot.series import POINTS, Series, drawn, hourly, series, thinned
from dbdyno.snapshot.settled import changed
from dbdyno.snapshot.store import Store
from dbdyno.snapshot.sums.chain import Chain

_OF_SERVER = {"version": "version", "databases read": "databases", "standby": "in_recovery"}
APART = 1.5
"""From so many times the one median on, a difference that is not certain is no all-clear."""
LONG_S = 2 * 86400
"""Where both periods are as long, an hour is one value: minutes of days repeat each other."""


def compare(
    store: Store, one: Period, other: Period, *, threshold: float = 0.02, decide: bool = False
) -> dict[str, Any]:
    """The model of a comparison. `decide`: even where settings or versions differ."""
    if one.chain[0].engine != other.chain[0].engine:
        raise SnapshotError(
            f"{one.name} is of {one.chain[0].engine}, {other.name} of {other.chain[0].engine}",
            next_step="compare two periods of one engine",
        )
    differing = differences(one, other)
    sums = [Chain(store, part.chain, Interval) for part in (one, other)]  # read once, for all
    by_hour = all(_seconds(part_sums) >= LONG_S for part_sums in sums)
    given = (_series(store, one, sums[0], by_hour=by_hour), _series(store, other, sums[1], by_hour=by_hour))
    allowed = decide or not differing
    rows = _rows(given[0], given[1], threshold, allowed)
    first, objects, told = _causes(store, one, other, sums, threshold, allowed=allowed, by_hour=by_hour)
    counts = [_usable(part) for part in given]
    for part_sums in sums:
        part_sums.close()
    warnings = [] if allowed else [_incomparable(differing)]
    for part, count in zip((one, other), counts, strict=True):
        if count < LEAST:
            warnings.append(
                {
                    "code": "snapshot.few",
                    "text": f"{part.name} has {count} sub-interval{'' if count == 1 else 's'}: too few to judge by",
                    "next": f"take at least {LEAST + 1} snapshots in each period: dbdyno snap watch",
                }
            )
    return {
        "schema": SCHEMA,
        "kind": "snapshot",
        "page": "compare",
        "facts": {
            "title": f"{one.name} against {other.name}",
            "engine": one.chain[0].engine,
            "version": other.chain[-1].facts.get("version"),
            "first": facts_of_end(one.chain[0]),
            "last": facts_of_end(other.chain[-1]),
            "periods": [f"{part.name}: {_times(part)}" for part in (one, other)],
        },
        "verdict": _verdict(rows, allowed, counts),
        "why": [part.pop("why") for part in first if "why" in part],
        "sections": [
            *first,
            _metrics(one, other, rows, counts, threshold, by_hour=by_hour),
            *objects,
            _changes(store, one, other, differing),
        ],
        "warnings": warnings,
        "series": _drawn((one, other), given, told),
    }


def _changes(store: Store, one: Period, other: Period, differing: list[Differs]) -> Part:
    """Objects, settings and versions that came, went or differ."""
    of_server = [row for row in differing if row["what"] in _OF_SERVER]
    rows: list[Row] = [{"kind": "server", "change": "differs", **row} for row in of_server]
    notes: list[str] = []
    if one.chain[0].target == other.chain[0].target:
        found, notes = changes(store, one, other)
        rows += found
    else:
        rows += [{"kind": "setting", "change": "differs", **row} for row in differing if row not in of_server]
    shown = columns("kind:text what:text change:text first:text second:text when:text:between")
    return section(
        "settings",
        "What came, went or changed",
        [table("", shown, rows)],
        about="From the one period's far end to the other's; what came and went again in between is left out.",
        notes=notes if rows else ["nothing came, went or changed", *notes],
    )


def _drawn(parts: tuple[Period, Period], given: tuple[Series, Series], events: list[Row]) -> dict[str, object]:
    """Both periods for the figure over the clock."""
    thin = [thinned(one, POINTS // 2) for one in given]
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
    return {**drawn(thin), "periods": spans, "events": events}


def _seconds(sums: Chain) -> float:
    """How long the sub-intervals are together."""
    return float(sum(part["elapsed_ns"] for part in sums.parts())) / 1e9


def _series(store: Store, part: Period, sums: Chain, *, by_hour: bool) -> Series:
    found = series(store, part.chain, sums)
    return hourly(found) if by_hour else found


def _causes(
    store: Store,
    one: Period,
    other: Period,
    sums: Sequence[Chain],
    threshold: float,
    *,
    allowed: bool,
    by_hour: bool,
) -> tuple[list[Part], list[Part], list[Row]]:
    """What changed from the one to the other, and why; then by object; the events of both. Nothing for engines
    without rules, and across servers, whose objects have other numbers."""
    if one.chain[0].engine not in ENGINES or one.chain[0].target != other.chain[0].target:
        return [], [], []
    with (
        Interval(store, one.chain[0], one.chain[-1], one.chain, sums=sums[0]) as before,
        Interval(store, other.chain[0], other.chain[-1], other.chain, sums=sums[1]) as after,
    ):
        about = f"{other.name} against {one.name}, summed over each: {_times(one)}, then {_times(other)}."
        objects = by_object(before, after, threshold=threshold, allowed=allowed, hourly=by_hour)
        told = [row for side in (before, after) for row in drawable(happenings(side))]
        return [happened(change_of(before, after), about)], [objects], told


def _times(part: Period) -> str:
    """From when to when, and of whom."""
    first, last = part.chain[0], part.chain[-1]
    day = "" if first.at.date() == last.at.date() else f"{last.at:%Y-%m-%d} "
    return f"{first.target} from {first.at:%Y-%m-%d %H:%M:%S} to {day}{last.at:%H:%M:%S} UTC"


def _metrics(
    one: Period, other: Period, rows: list[dict[str, object]], counts: list[int], threshold: float, *, by_hour: bool
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
        about=f"{one.name}: {counts[0]} {'hours' if by_hour else 'sub-intervals'}, {other.name}: {counts[1]}."
        " change: second against first, geometric means. second larger: the chance that a sub-interval of the"
        " second has the larger value (50 %: no effect). q: p after false-discovery control over"
        f" these metrics. Changes within {threshold * 100:.3g} % count as none.",
    )


def _rows(a: Series, b: Series, threshold: float, allowed: bool) -> list[Row]:
    from dbdyno.stats.decide import benjamini_hochberg

    known = {metric.name: metric for metric in b.metrics}
    rows = [
        compared(metric, _values(a, metric.name), _values(b, metric.name))
        for metric in a.metrics
        if metric.name in known
    ]
    judged = [row for row in rows if row["p"] is not None]
    for row, q in zip(judged, benjamini_hochberg([row["p"] for row in judged]), strict=True):
        row["q"] = q
        row["decision"] = decision(row, q, threshold) if allowed else "not comparable"
    return rows


def _values(part: Series, name: str) -> list[float]:
    return [value for value in part.values[name] if value is not None]


def _usable(part: Series) -> int:
    return max((len(_values(part, metric.name)) for metric in part.metrics), default=0)


def _verdict(rows: list[Row], allowed: bool, counts: list[int]) -> dict[str, str]:
    """The word, and why: no all-clear where too few sub-intervals or too unlike ones leave a large difference open."""
    if not allowed:
        return {"word": "not comparable", "why": "settings, versions or databases differ"}
    worse, better = ([row["metric"] for row in rows if row["decision"] == word] for word in ("worse", "better"))
    if worse:
        return {"word": "worse", "why": "worse: " + ", ".join(worse)}
    apart = [row for row in rows if row["decision"] == "cannot tell" and _is_apart(row)]
    if better:
        return _better(better, [row["metric"] for row in apart if (row["b"] > row["a"]) is not bool(row["higher"])])
    if min(counts) < LEAST:
        few = f"{counts[0]} and {counts[1]} sub-intervals are too few to judge metrics by"
        return {"word": "cannot tell", "why": f"{few}: {LEAST} each are the least"}
    if apart:
        names = ", ".join(row["metric"] for row in apart)
        return {"word": "cannot tell", "why": f"{names}: medians far apart, and not for certain"}
    return {"word": "ok", "why": "no metric with a good side differs for certain"}


def _better(better: list[str], bad: list[str]) -> dict[str, str]:
    """Better, unless `bad` ones lie far apart to the worse."""
    why = f"better: {', '.join(better)}"
    if not bad:
        return {"word": "better", "why": why}
    return {
        "word": "cannot tell",
        "why": f"{', '.join(bad)}: medians far apart to the worse, and not for certain; {why}",
    }


def _is_apart(row: Row) -> bool:
    """Whether the medians of a metric with a good side are far apart."""
    a, b = row["a"], row["b"]
    return row["higher"] is not None and bool(a) and bool(b) and not 1 / APART <= b / a <= APART


class Differs(TypedDict):
    """A setting, a version or the databases, in two periods."""

    what: str
    first: str | None
    second: str | None


def _incomparable(differing: list[Differs]) -> dict[str, str]:
    names = ", ".join(str(row["what"]) for row in differing[:5])
    return {
        "code": "snapshot.not_comparable",
        "text": f"not comparable: {names} differ",
        "next": "if that is the change under test: --accept-differences",
    }


def differences(one: Period, other: Period) -> list[Differs]:
    """What differs between two periods, or inside one of them."""
    found: list[Differs] = []
    seen = [{tuple(str(facts.get(n)) for n in _OF_SERVER.values()) for facts in _facts(part)} for part in (one, other)]
    for at, label in enumerate(_OF_SERVER):
        values = [sorted({said[at] for said in side}) for side in seen]
        if values[0] != values[1]:
            found.append({"what": label, "first": ", ".join(values[0]), "second": ", ".join(values[1])})
    with for_files() as connection:

        def query(sql: str) -> list[Row]:
            cursor = connection.execute(sql)
            names = [column[0] for column in cursor.description or []]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        settings = changed(one.chain[-1], other.chain[-1], query)
    return [*found, *[Differs(what=name, first=old, second=new) for name, old, new in settings]]


def _facts(part: Period) -> Iterator[dict[str, Any]]:
    return (end.facts for end in part.chain)
