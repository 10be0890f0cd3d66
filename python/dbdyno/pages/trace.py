"""Builder of pages about traces: the head, the sections of each kind of page (in separate modules), warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dbdyno.base.json_types import TableRow
from dbdyno.page import Head, Page, Section
from dbdyno.pages import (
    common,
    explanation,
    reading,
    trace_check,
    trace_join,
    trace_profile,
    trace_statements,
    trace_tree,
    trace_waits,
)
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, with_noun
from dbdyno.pages.reading import Analysis, Entry
from dbdyno.pages.trace_finding import finding
from dbdyno.pages.trace_text import period

KINDS = {
    "profile": "Response-time profile",
    "sql": "Statements",
    "events": "Waits by event",
    "waits": "Waits",
    "tree": "Recursion tree of one execution",
    "timeline": "Timeline of sessions",
    "check": "Check of traces",
    "report": "Trace report",
    "join": "Both sides of calls",
}


def page(model: Analysis, *, skew: bool = False) -> Page:
    """Return the page of the kind that the model names; with `skew`, a terminal shows all skew tables of a profile."""
    name = str(model.get("page"))
    name = name if name in KINDS else "profile"
    made = trace_profile.sections(model, skew=skew) if name == "profile" else _SECTIONS[name](model)
    return Page(
        _head(model, name),
        (*made, common.warnings(model, "Warnings", most=common.WARNINGS_MOST)),
        data=lambda: common.flat_table(_ROWS[name](model)),
    )


def _head(model: Analysis, name: str) -> Head:
    facts = reading.dig(model, "facts") or {}
    warnings = len(reading.entries(model, "warnings"))
    return Head(
        KINDS[name],
        fmt.line(facts.get("title") or "traces"),
        "trace_head",
        period(facts.get("from_ns"), facts.get("to_ns")),
        headline=finding(model, name),
        chips=tuple(phrase for phrase in _chips(facts) if phrase),
        alerts=((with_noun(warnings, "warning"), "gates"),) if warnings else (),
        section="Trace",
    )


def _chips(facts: Entry) -> Iterator[str]:
    """Yield the known facts, one short phrase each."""
    yield with_noun(facts.get("files"), "file")
    yield fmt.size(facts["bytes"]) if facts.get("bytes") else ""
    yield with_noun(facts.get("lines"), "line")
    yield with_noun(facts.get("sessions"), "session")
    yield f"{fmt.span(facts['elapsed_ns'] / 1e9)} of session time" if facts.get("elapsed_ns") else ""
    yield from (_engine(fmt.line(version, 30)) for version in facts.get("versions") or [])
    yield from (f"level {fmt.line(level, 20)}" for level in facts.get("levels") or [])


def _engine(version: str) -> str:
    """Return the engine with its version; a PostgreSQL version contains the name, an Oracle version does not."""
    return version if version.startswith("PostgreSQL") else f"Oracle {version}"


def _timeline(model: Analysis) -> Iterator[Section]:
    """Yield the sessions' activity by interval."""
    sessions = reading.entries(model, "sessions")
    if not sessions:
        return
    every = fmt.number(model.get("every_ns")) or 1e9
    classes = reading.entries(model, "classes")
    whole = sum(fmt.number(entry.get("time_ns")) or 0.0 for entry in classes) or 1.0
    times = [fmt.number(entry.get("time_ns")) for entry in classes]
    shares = [None if None in times or time is None else time / whole for time in times]
    rows = [{**entry, "share": share} for entry, share in zip(classes, shares, strict=True)]
    by_class = common.table("", columns("class:text time_ns:seconds:seconds share:share"), rows, look="slim")
    rows = [
        {
            **row,
            "name": fmt.line(row.get("name") or f"session {row.get('session')}"),
            "from": fmt.clock(row.get("started_ns"), every),
            "elapsed": None if row.get("elapsed_ns") is None else row["elapsed_ns"] / 1e9,
        }
        for row in sessions
    ]
    shown = columns("name:text:session from:left elapsed:span calls:count waits:count file:text")
    folded = common.table("", shown, rows, look="slim", folded=with_noun(len(rows), "session"), where="page")
    yield Section("figures", f"Every {fmt.duration(every)}", figures=common.figures(model, "timeline"))
    yield Section("trace_timeline", "Time by class", tables=(by_class, folded))


def _timeline_rows(model: Analysis) -> list[TableRow]:
    """Return one row per session, interval and class."""
    return [
        {
            "session": row.get("name") or row.get("session"),
            "at_ns": entry["at_ns"],
            "width_ns": entry["width_ns"],
            "class": name,
            "time_ns": round(time_ns),
        }
        for row in reading.entries(model, "sessions")
        for entry in row.get("bins") or []
        for name, time_ns in entry["classes"].items()
    ]


def _report(model: Analysis) -> Iterator[Section]:
    """Yield a whole set of traces on one page: profile, statements with all their details, longest waits."""
    yield from explanation.sections(model)
    if reading.dig(model, "profile") is not None:
        yield trace_profile.profile(model)
    yield from trace_waits.holders(model)
    drawn = common.figures(model, "profile", "wait_distribution", "wait_series", "wait_longest")
    yield Section("figures", "Figures", figures=drawn, where="page")
    yield from trace_statements.overview(model)
    yield from trace_statements.sections(model)
    yield from trace_waits.longest_section(model)
    yield from trace_profile.calls(model)


_SECTIONS: dict[str, Callable[[Analysis], Iterable[Section]]] = {
    "sql": trace_statements.sections,
    "events": trace_waits.events,
    "waits": trace_waits.sections,
    "tree": trace_tree.sections,
    "timeline": _timeline,
    "check": trace_check.sections,
    "report": _report,
    "join": trace_join.sections,
}
_ROWS: dict[str, Callable[[Analysis], list[dict[str, object]]]] = {
    "profile": trace_profile.rows,
    "sql": trace_statements.rows,
    "events": lambda model: _pick(model, "events", trace_waits.EVENTS),
    "waits": lambda model: _pick(model, "longest", trace_waits.WAITS),
    "tree": trace_tree.rows,
    "timeline": _timeline_rows,
    "check": trace_check.rows,
    "report": trace_statements.rows,
    "join": trace_join.statement_rows,
}


def _pick(model: Analysis, key: str, names: Iterable[str]) -> list[dict[str, object]]:
    return [{name: row.get(name) for name in names} for row in reading.entries(model, key)]
