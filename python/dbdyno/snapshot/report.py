"""The report of an interval as a plain model, which every renderer reads and JSON contains."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Part, Row, columns, section, table
from dbdyno.snapshot.engines.view import OK, WORDS, Verdict
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store.folder import Snapshot

SCHEMA = 1
COMPLETE = "data complete"
"""Verdict in the report's head if nothing affects the figures."""
TOP = 10


def report(interval: Interval, top: int = TOP) -> JsonObject:
    """Return the model of an interval's report."""
    from dbdyno.snapshot.causes import causes_within

    lost = lost_rows(interval)
    head = worst_verdict(interval, lost)
    first = [one for one in (causes_within(interval),) if one is not None]
    made = [*first, *interval.engine.sections(interval, top), _cost(interval)]
    return {
        **page_head(interval, "report", head),
        "verdicts": [
            {"scope": scope, "of": value, "word": one.word, "why": one.why, "at_us": one.at_us}
            for (scope, value), one in sorted(interval.verdicts.items(), key=lambda item: (item[0][0], str(item[0][1])))
            if one.word != "ok" or one.why
        ],
        "why": [one.pop("why") for one in first if "why" in one],
        "sections": made,
        "warnings": [*_warnings(interval), *(_warning("", one) for one in lost)],
        **_figures(interval, made),
    }


def page_head(interval: Interval, page: str, head: Verdict) -> JsonObject:
    """Return the first keys of an interval's page: what it is, the interval's facts, and the verdict on its data."""
    return {
        "schema": SCHEMA,
        "kind": "snapshot",
        "page": page,
        "facts": facts_of(interval),
        "verdict": {"word": head.word, "why": head.why, "at_us": head.at_us},
    }


def _figures(interval: Interval, parts: list[Part]) -> JsonObject:
    """Return the curves and events for a report's key `series`, from the session history if there is one."""
    from dbdyno.snapshot.reading.long_timeline import chart_events, long_events
    from dbdyno.snapshot.reading.series import report_series

    found = report_series(interval)
    if found:
        known = next((one["drawn"]["events"] for one in parts if "drawn" in one), None)
        found["series"]["events"] = chart_events(long_events(interval)) if known is None else known
    return found


def lost_rows(interval: Interval) -> list[Verdict]:
    """Return a verdict for each view in which some statements or tables were reset, but not the whole view."""
    found = []
    for view, record in interval.after.views.items():
        scope = record.get("scope")
        if scope not in ("statements", "objects") or not interval.has(view) or not interval.counters(view):
            continue
        counts = interval.query(
            "select count(*) as n, count(*) filter (where verdict = 'reset') as lost"
            f" from {interval.table(view)} where life = 'kept'"
        )[0]
        if 0 < counts["lost"] < counts["n"]:
            why = f"{counts['lost']} of {counts['n']} rows of {view} were reset: earlier counts are not known"
            found.append(Verdict("reset", why))
    return found


def worst_verdict(interval: Interval, verdicts: Sequence[Verdict] = ()) -> Verdict:
    """Return the worst verdict of all scopes and of the single rows in `verdicts`, for the report's head.

    Of equally grave verdicts, the one on the whole server is returned.
    """
    order = {"cluster": 0, "clock": 1}
    every = sorted(interval.verdicts.items(), key=lambda item: (order.get(item[0][0], 2), str(item[0])))
    found = max((*(one for _, one in every), *verdicts), key=lambda one: WORDS.index(one.word), default=OK)
    return Verdict(COMPLETE, found.why, found.at_us) if found.word == "ok" else found


def facts_of(interval: Interval) -> dict[str, object]:
    """Return the facts of an interval for a page: target, engine, both ends."""
    last = interval.after.facts
    return {
        "title": f"{interval.after.target}",
        "engine": interval.after.engine,
        "version": last.get("version"),
        "role": last.get("role"),
        "databases": last.get("databases"),
        "seconds": interval.seconds,
        "first": facts_of_end(interval.before),
        "last": facts_of_end(interval.after),
        "snapshots": len(interval.chain),
    }


def facts_of_end(snapshot: Snapshot) -> dict[str, object]:
    """Return the facts of one snapshot for a report."""
    return {"number": snapshot.number, "at": snapshot.at_utc.isoformat(), "note": snapshot.note}


def _warnings(interval: Interval) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for (scope, value), one in interval.verdicts.items():
        if one.word == "ok" and not one.why:
            continue
        where = "" if scope in ("cluster", "clock") else f"{scope.removeprefix('view:')}: "
        warning = _warning(where, one)
        if value is None or warning["text"] not in {w["text"] for w in found}:
            found.append(warning)
    unique = {one["text"].partition(": ")[2].rpartition(": ")[2]: one for one in reversed(found)}
    return list(reversed(unique.values()))


def _warning(where: str, verdict: Verdict) -> dict[str, str]:
    head = verdict.word if verdict.word != "ok" else "note"
    return {
        "code": f"snapshot.{verdict.word.replace(' ', '_')}",
        "text": f"{head}: {where}{verdict.why}",
        "next": _next(verdict),
    }


_NEXT = {
    "crash": "report the time before and after it separately, using the snapshots between",
    "failover": "report the time of each server separately",
    "reset": "report the time before and after the reset separately",
    "evicted": "raise pg_stat_statements.max, or take snapshots more often",
    "clock stepped": "check that the server's clock is slewed, not set (chrony's makestep, ntpd -g)",
    "partial": "read the same databases in every snapshot, with a role that may connect to them",
}


def _next(verdict: Verdict) -> str:
    return "" if verdict.why.endswith("is not on this server") else _NEXT.get(verdict.word, "")


def _cost(interval: Interval) -> Part:
    """Return the section on the cost of collecting: the last snapshot's reads, the sampler's looks."""
    last = interval.after
    rows: list[Row] = [
        {
            "view": name,
            "rows": record["rows"],
            "time": record["elapsed_ns"],
            "problem": record.get("problem") or "",
        }
        for name, record in last.views.items()
        if record["elapsed_ns"] or record.get("problem")
    ]
    rows.sort(key=lambda row: -row["time"])
    cost = last.manifest["cost"]
    looks = interval.looks
    notes = [
        f"snapshot {last.number} took {cost.get('collect_s', 0):.2f} s,"
        f" {cost.get('collect_cpu_s', 0):.2f} s of CPU time on this machine"
    ]
    if looks:
        notes.append(f"the sessions were sampled {looks} times")
    notes += [
        f"{problem['view']} of {problem['database']}: {problem['problem']}"
        for problem in last.facts.get("problems") or ()
    ]
    shown = columns("view:text rows time:ns problem:text")
    return section("cost", "Cost of collecting", [table("", shown, rows, top=10)], notes=notes)
