"""One page about a set of traces, from the profile down to single waits.

    profile -> statements -> each with its calls, waits, plan, binds and tree -> the longest waits

Every part is the one that its own command shows (`profile`, `sql`, `tree`, `waits`), so their figures agree; here they
are combined, and a renderer can link them. Bind values are included if the import kept them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from dbdyno.base.explanation import CausalExplanation, Cause, largest_causes, unexplained
from dbdyno.base.json_types import JsonObject
from dbdyno.trace import profile, statements, tree
from dbdyno.trace.columns import parameter_names
from dbdyno.trace.holders import LockWaits, describe_holders, holders
from dbdyno.trace.page import page
from dbdyno.trace.pivot import CPU, WITHIN
from dbdyno.trace.source import Traces
from dbdyno.trace.statement_types import Binds, Entry, Longest
from dbdyno.trace.tree import Tree

BINDS = 3
"""Number of longest executions of a statement that are shown with their bind values."""
OWN_LONGEST = 5
THINK = "think time"
TEXT_MOST = 60
"""Maximum length of a statement's text in a sentence [characters]."""
_QUIET = "coalesce(w.class, '') <> 'idle' and not coalesce(w.think, false)"


@dataclass(frozen=True)
class Request:
    """Contents of a report.

    `top` is the number of statements, `sort` their order, `longest` the number of longest waits. With `merge_literals`,
    statements that differ only in literals count as one. Branches below `share` of an execution are folded in its tree.
    """

    top: int = 15
    sort: str = "elapsed"
    merge_literals: bool = False
    longest: int = 20
    share: float = tree.SHARE


def report_page(traces: Traces, request: Request | None = None) -> dict[str, object]:
    """Return the report page.

    Raises:
        TraceError: No trace could be read, or the requested order of statements is unknown.
    """
    from dbdyno import _core

    by_event = profile.Request()
    found = json.loads(_core.profile_run(traces.run.path, by_event.as_json()))
    return report_of_profile(profile.page_of(found, by_event, [str(traces.run.path)]), traces, request or Request())


def report_of_profile(whole: Mapping[str, Any], traces: Traces, request: Request) -> JsonObject:
    """Return the report page for a profile that has been computed."""
    listed = statements.statements_page(traces, statements.Request(request.top, request.sort, request.merge_literals))
    for entry in listed["statements"]:
        entry["binds"] = _binds(traces, entry["statement"])
        entry["longest"] = _longest(traces, OWN_LONGEST, "k.key = ? and ", [entry["statement"]])
        entry["tree"] = _tree(traces, entry, request.share)
    mostly = _main_statements(traces)
    locks = holders(traces)
    body = {
        "why": [_causes_of_time(whole["profile"], mostly, _texts(traces, mostly), locks).as_dict()],
        "profile": whole["profile"],
        "calls": whole["calls"],
        "mostly": mostly,
        "holders": [one.as_dict() for one in locks.values()],
        "longest": _longest(traces, request.longest),
        "statements": listed["statements"],
        "left_out": listed["left_out"],
        "totals": listed["totals"],
        "request": listed["request"],
        "findings": listed["findings"],
    }
    return page("report", traces, body)


def _causes_of_time(
    given: Mapping[str, Any], mostly: dict[str, MainStatement], texts: dict[str, str], locks: dict[str, LockWaits]
) -> CausalExplanation:
    """Return where most of the sessions' time went, without think time.

    The causes are the largest lines of the profile, each with the statement that has most of it; for lock waits also
    what the holders did meanwhile. The lines are exact and add up to the time.
    """
    lines = [row for row in given.get("rows") or () if row["name"] != THINK]
    thought = sum(row["total_ns"] for row in given.get("rows") or () if row["name"] == THINK)
    whole = float(given.get("elapsed_ns") or 0) - thought
    of = "the sessions' time without think time"
    if whole <= 0:
        return CausalExplanation(of, "ns", None, withheld="no time was recorded")
    every = [
        Cause(
            "wait" if row["name"] in mostly and row["name"] not in (CPU, WITHIN) else "line",
            str(row["name"]),
            _with_statement(str(row["name"]), mostly.get(row["name"]), texts) + _with_holders(locks.get(row["name"])),
            float(row["total_ns"]),
            share=float(row["total_ns"]) / whole,
            evidence=(f"{row.get('count') or 0:,} of them (profile, line {row['name']})",),
        )
        for row in lines
    ]
    named = largest_causes(every)
    left, share = unexplained(whole, named)
    return CausalExplanation(of, "ns", whole, after=whole, causes=named, rest=left, rest_share=share)


def _with_statement(name: str, most: MainStatement | None, texts: dict[str, str]) -> str:
    if not most or not most["share"]:
        return name
    key = most["statement"]
    where = f"statement {key}" if key else "no statement"
    text = " ".join((texts.get(key) or "").split())
    if text:
        where += f" ({text if len(text) <= TEXT_MOST else text[: TEXT_MOST - 1] + '…'})"
    return f"{name}, {100 * most['share']:.0f} % of it in {where}"


def _with_holders(lock_waits: LockWaits | None) -> str:
    words = describe_holders(lock_waits) if lock_waits else ""
    return f"; {words}" if words else ""


def _texts(traces: Traces, mostly: dict[str, MainStatement]) -> dict[str, str]:
    """Return the texts of the statements that have most of an event's time."""
    rows = traces.rows(
        "select key, any_value(text) as text from keys where key in (select unnest($1::varchar[])) group by key",
        [[most["statement"] for most in mostly.values()]],
    )
    return {row["key"]: row["text"] or "" for row in rows}


def _longest(traces: Traces, limit: int, condition: str = "", given: list[Any] | None = None) -> list[Longest]:
    """Return the longest waits except idle ones: those of all statements, or those that meet a condition."""
    rows = traces.rows(
        f"""
        select w.elapsed_ns, w.started_ns, w.event, w.class, w.session, k.key as statement, k.text, w.p1, w.p2, w.p3,
               {parameter_names("w")} as parameters, w.object_id, c.kind as inside, w.file, w.line
        from waits w left join keys k on k.statement is not distinct from w.statement
        left join calls c on c.call = w.call where {condition} {_QUIET}
        order by w.elapsed_ns desc, w.wait limit {int(limit)}
        """,  # noqa: S608
        given,
    )
    return [cast("Longest", row | {"file": traces.path_of(row["file"])}) for row in rows]


class MainStatement(TypedDict):
    """The statement with most of an event's time, and its share."""

    statement: str
    share: float | None


def _main_statements(traces: Traces) -> dict[str, MainStatement]:
    """Return, by event and for CPU and unexplained time, the statement with most of that time, and its share."""
    rows = traces.rows(
        f"""
        with own as (
          select k.key as statement, sum(c.self_cpu_ns) as cpu,
                 sum(c.self_elapsed_ns - c.self_cpu_ns - c.self_wait_ns) as within
          from calls c join keys k on k.statement is not distinct from c.statement group by all),
        summed as (
          select w.event, k.key as statement, sum(w.elapsed_ns) as ns
          from waits w join keys k on k.statement is not distinct from w.statement group by all
          union all select '{CPU}', statement, cpu from own
          union all select '{WITHIN}', statement, within from own)
        select event, first(statement order by ns desc, statement) as statement, max(ns) / nullif(sum(ns), 0) as share
        from summed group by event having min(ns) >= 0
        """  # noqa: S608
    )
    return {row["event"]: {"statement": row["statement"], "share": row["share"]} for row in rows}


def _binds(traces: Traces, key: str) -> list[Binds]:
    """Return the bind values of the statement's longest executions, if they were kept.

    A block of binds belongs to the next execution of its cursor.
    """
    rows = traces.rows(
        f"""
        with mine as (
          select c.* from calls c join keys k on k.statement is not distinct from c.statement
          where k.key = $1 and c.kind = 'exec'),
        bound as (
          select b.number, b.value, b.data_type, m.call, m.elapsed_ns, m.file, m.line
          from binds b asof join mine m on b.file = m.file and b.cursor = m.cursor and b.line <= m.line
          where b.number is not null),
        chosen as (select distinct call, elapsed_ns from bound order by elapsed_ns desc, call limit {BINDS})
        select call, any_value(elapsed_ns) as elapsed_ns, any_value(file) as file, any_value(line) as line,
               list(number order by number) as numbers, list(value order by number) as values
        from bound semi join chosen using (call) group by call order by elapsed_ns desc, call
        """,  # noqa: S608
        [key],
    )
    return [cast("Binds", row | {"file": traces.path_of(row["file"])}) for row in rows]


def _tree(traces: Traces, entry: Entry, share: float) -> Tree | None:
    """Return the tree of the statement's longest execution that called other statements, or None."""
    if not entry["children"]:
        return None
    found = traces.connection.execute(
        "select call from calls c join keys k on k.statement is not distinct from c.statement where k.key = $1"
        " and exists (select 1 from calls i where i.parent = c.call) order by elapsed_ns desc, call limit 1",
        [entry["statement"]],
    ).fetchone()
    if found is None:
        return None
    return tree.tree_of(traces, int(found[0]), share=share)
