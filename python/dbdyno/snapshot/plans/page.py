"""The page of `dbdyno snap plans`: changes of plans first, then each statement's plans, then what was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.evidence.memory import row_dicts
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.plans.estimates import estimates
from dbdyno.snapshot.plans.flips import Flip, create_log_seen, flips
from dbdyno.snapshot.plans.latency import FORM, LATENCY_SQL, PLANS_SQL, SOURCES
from dbdyno.snapshot.plans.misestimates import misestimate_factor
from dbdyno.snapshot.wording import time_change

if TYPE_CHECKING:
    import duckdb

SETUP = (
    "as a superuser: alter role app set session_preload_libraries = 'auto_explain', auto_explain.log_min_duration ="
    " '100ms', and auto_explain.sample_rate = 0.1 where statements are many; see docs/how-to/snapshot.md for the cost"
)
ANALYZE = "auto_explain.log_analyze = on, which slows every statement; auto_explain.log_timing = off reduces the cost"
FLIPS = (
    "at:time text:text:statement what:text:change old_ns:ns:p50_before new_ns:ns:p50_after"
    " before:count:executions_before after:count:executions_after place:text:in_the_log statement:code:identifier"
)
_PLANS = columns(
    "text:text:statement sketch:text:plan executions p50:ns p95:ns p99:ns rows_planned:count:rows_estimated"
    " rows:count:rows misestimate:times:worst_misestimate hits:count:blocks_hit reads:count:blocks_read first:time"
    " last:time plan:code:plan_identifier statement:code:identifier"
)
_LATENCY = columns(
    "text:text:statement executions p50:ns p95:ns p99:ns worst:ns:max source:text:from statement:code:identifier"
)
_ESTIMATES = columns(
    "text:text:statement node:text:node conditions:text planned:count:rows_estimated found:count:rows_found"
    " off:times:off loops:count seen:text:in_executions place:text:in_the_log statement:code:identifier"
)
_LOGS = columns("log:text form:text executions plans from:time to:time bytes:bytes")


def page(
    connection: duckdb.DuckDBPyConnection,
    logs: Sequence[Row],
    *,
    target: str,
    notes: Iterable[str] = (),
    names: Iterable[tuple[str, int]] = (),
    top: int = 20,
) -> dict[str, Any]:
    """Return the model of the page.

    Args:
        connection: A connection with the tables of `GatheredExecutions`.
        logs: For each log its name, form, executions, plans, from, to and bytes.
        target: Title of the page.
        notes: Sentences on what was not read and what was stored.
        names: Fingerprints with known identifiers.
        top: Largest number of rows in a table.
    """
    create_log_seen(connection, names)
    changes = flips(connection)
    several = _several(connection, {one.statement for one in changes})
    found = [one for one in (_span(logs),) if one is not None]
    return {
        "schema": 1,
        "kind": "snapshot",
        "page": "plans",
        "facts": {"title": target, "engine": "postgres", "seconds": found[0] if found else None},
        "verdict": _verdict(changes, logs),
        "verdicts": [],
        "sections": [
            _flips_section(changes, logs, several, top),
            _plans_section(connection, logs, top),
            _latency_section(connection, top),
            _estimates_section(connection, logs, top),
            section("logs", "What was read", [table("", _LOGS, list(logs))], notes=notes),
        ],
        "warnings": [],
    }


def _span(logs: Sequence[Row]) -> float | None:
    known = [(one["from"], one["to"]) for one in logs if one["from"] is not None]
    return (max(to for _, to in known) - min(low for low, _ in known)) / 1e6 if known else None


def _verdict(changes: Sequence[Flip], logs: Sequence[Row]) -> dict[str, Any]:
    plans = sum(one["plans"] for one in logs)
    if logs and all(one["form"] == FORM for one in logs):
        return {"word": "ok", "why": "latencies only: a recording has no plans", "at_us": None}
    if not plans:
        return {"word": "partial", "why": "no plan was read", "at_us": None}
    if not changes:
        return {"word": "ok", "why": "no statement changed its plan", "at_us": None}
    of = len({one.statement for one in changes})
    often = "once" if len(changes) == 1 else f"{len(changes)} times"
    return {
        "word": "plans changed",
        "why": f"{of} {'statement' if of == 1 else 'statements'} changed the plan, {often} in total",
        "at_us": changes[0].at_us,
    }


def describe_flip(flip: Flip) -> str:
    """Return in words how the plan and the median time changed."""
    return f"{flip.what}; p50 {time_change(flip.old_ns / 1e6, flip.new_ns / 1e6)}"


def flip_sentence(flip: Flip) -> str:
    """Return a flip as a sentence."""
    text = flip.text if len(flip.text) <= 100 else flip.text[:99] + "…"
    return f"statement {flip.statement} ({text}) changed its plan at {instant_text(flip.at_us)}: {describe_flip(flip)}"


def flip_row(flip: Flip, place: str) -> Row:
    """Return a flip as a row of the table; `place` is where in the log it is."""
    return {
        **{name: getattr(flip, name) for name in ("text", "what", "old_ns", "new_ns", "before", "after", "statement")},
        "at": flip.at_us,
        "place": place,
        "old": flip.old,
        "new": flip.new,
    }


def _flips_section(changes: Sequence[Flip], logs: Sequence[Row], several: int, top: int) -> Part:
    rows = [flip_row(one, f"{logs[one.file]['log']}:{one.line}") for one in changes]
    notes = [flip_sentence(one) for one in changes[:5]]
    if several:
        notes.append(
            f"{several} {'statement uses' if several == 1 else 'statements use'} several plans alternately: see below"
        )
    return section(
        "flips",
        "Plans that changed",
        [table("", columns(FLIPS), rows, top=top)],
        about="A flip: of the next 20 executions, at least 18 have another plan than those before. Its time is the"
        " end of the first execution with the new plan.",
        notes=notes or ["none"],
    )


def _several(connection: duckdb.DuckDBPyConnection, changed: set[str]) -> int:
    """Return the number of statements that alternate between plans, which are those with several plans but no flip."""
    rows = connection.execute(
        "select statement from log_seen where plan is not null group by 1 having count(distinct plan) > 1"
    ).fetchall()
    return sum(1 for (one,) in rows if one not in changed)


def _plans_section(connection: duckdb.DuckDBPyConnection, logs: Sequence[Row], top: int) -> Part:
    rows = _rows(connection, PLANS_SQL)
    lacks = []
    if not any(one["plans"] for one in logs):
        lacks.append(missing_measurement("plans", "auto_explain logged none", SETUP))
    elif all(one["rows"] is None for one in rows):
        lacks.append(missing_measurement("rows found", "auto_explain.log_analyze is off", ANALYZE))
    if rows and all(one["hits"] is None for one in rows):
        lacks.append(
            missing_measurement(
                "blocks", "auto_explain.log_buffers is off", "auto_explain.log_buffers = on, with log_analyze"
            )
        )
    return section(
        "plans",
        "Plans by statement",
        [table("", _PLANS, rows, top=top)],
        about="The slowest statements in total come first. Rows and blocks are rounded means per execution;"
        " worst misestimate:"
        " how many times more or fewer rows a node returned than estimated. Times are those of the executor.",
        not_measured=lacks,
    )


def _latency_section(connection: duckdb.DuckDBPyConnection, top: int) -> Part:
    rows = [one | {"source": SOURCES[one["source"]]} for one in _rows(connection, LATENCY_SQL)]
    return section(
        "latency",
        "Latency by statement",
        [table("", _LATENCY, rows, top=top)],
        about="Quantiles are executions that were logged or recorded, not estimates between them. Where only slow or"
        " sampled executions are logged, they are those of these.",
    )


def _estimates_section(connection: duckdb.DuckDBPyConnection, logs: Sequence[Row], top: int) -> Part:
    found = estimates(connection)
    rows: list[Row] = [
        {
            **{name: getattr(one, name) for name in ("text", "statement", "planned", "found", "loops")},
            "node": one.node.title,
            "conditions": "; ".join(f"{name}: {words}" for name, words in one.node.conditions),
            "off": misestimate_factor(one.planned, one.found),
            "seen": f"{one.executions} of {one.measured}",
            "place": f"{logs[one.file]['log']}:{one.line}",
        }
        for one in found
        if one.node is not None
    ]
    lacks = [] if found else [missing_measurement("rows found", "auto_explain.log_analyze is off", ANALYZE)]
    return section(
        "estimates",
        "Estimates that were wrong",
        [table("", _ESTIMATES, rows, top=top)],
        about="Of each statement and plan the node with which rows begin to differ from the estimate, tenfold or more,"
        " though those below it do not; medians for a loop.",
        notes=["none"] if found and not rows else [],
        not_measured=lacks,
    )


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    return row_dicts(connection.execute(sql))
