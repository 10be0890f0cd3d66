"""Call table, waits, plans, callers and called statements of each statement.

Figures are exclusive: the work of a statement's recursive children counts for them and not for the statement, so the
statements add up to the whole. Waits inside calls are part of `elapsed`; waits between calls (mostly the client's think
time) are not, and the two are never added together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, get_args

from dbdyno.base.errors import TraceError
from dbdyno.trace.literals import findings
from dbdyno.trace.page import page
from dbdyno.trace.plans import plans_by_key
from dbdyno.trace.source import Row, Traces
from dbdyno.trace.statement_types import (
    Entry,
    Figure,
    Figures,
    LeftOut,
    Relative,
    StatementsPage,
    Step,
    Total,
    Totals,
    Wait,
)

RECORDED = ("bind", "commit", "rollback", "sync", "worker", "connect", "message", "disconnect", "background")
"""Kinds of calls that only a recorded PostgreSQL has."""
STEPS = ("parse", "execute", "fetch", "close", "lob", *RECORDED)
SORTS = {
    "elapsed": "elapsed_ns",
    "cpu": "cpu_ns",
    "wait": "wait_ns",
    "count": "calls",
    "executions": "executions",
    "rows": "rows",
    "disk": "physical_reads",
    "query": "consistent_reads",
    "current": "current_reads",
    "misses": "misses",
}
"""Values of `--sort`, each with the figure by which statements are sorted, largest first."""

_STEP = (
    "case when kind = 'parse' then 'parse' when kind in ('exec', 'unmap', 'sort unmap', 'rpc exec')"
    " then 'execute' when kind = 'fetch' then 'fetch' when kind = 'close' then 'close'"
    f" when kind in {RECORDED} then kind else 'lob' end"
)
_SUMS = """
  count(*) as calls,
  sum(coalesce(self_elapsed_ns, elapsed_ns))::bigint as elapsed_ns,
  sum(coalesce(self_cpu_ns, cpu_ns, 0))::bigint as cpu_ns,
  sum(coalesce(self_wait_ns, 0))::bigint as wait_ns,
  sum(coalesce(self_physical_reads, 0))::bigint as physical_reads,
  sum(coalesce(self_consistent_reads, 0))::bigint as consistent_reads,
  sum(coalesce(self_current_reads, 0))::bigint as current_reads,
  sum(coalesce(rows, 0))::bigint as rows,
  sum(coalesce(misses, 0))::bigint as misses,
  sum(elapsed_ns)::bigint as inclusive_ns
"""
_FIGURES: tuple[Figure, ...] = get_args(Figure)


@dataclass(frozen=True)
class Request:
    """Which statements to show.

    `top` is their number, `sort` their order. `merge_literals` merges statements that differ only in literals. Without
    `recursive`, statements of SYS are left out. `statement` selects a single one.
    """

    top: int = 10
    sort: str = "elapsed"
    merge_literals: bool = False
    recursive: bool = True
    statement: str | None = None


def statements_page(traces: Traces, request: Request) -> StatementsPage:
    """Return the page about statements.

    Raises:
        TraceError: the order or the statement is unknown.
    """
    if request.sort not in SORTS:
        raise TraceError(f"unknown sort order {request.sort!r}", next_step=f"use one of: {', '.join(SORTS)}")
    _keys(traces, request.merge_literals)
    rows = traces.rows(
        f"select k.key, {_STEP} as step, {_SUMS} from calls c"  # noqa: S608
        " join keys k on k.statement is not distinct from c.statement group by all"
    )
    found = _by_key(rows)
    _describe(traces, found)
    chosen = [entry for entry in found.values() if _is_wanted(entry, request)]
    if request.statement and not chosen:
        raise TraceError(
            f"there is no statement {request.statement!r}",
            next_step="list the statements with `dbdyno trace sql FILES --top 0`",
        )
    order = cast("Figure", SORTS[request.sort])
    chosen.sort(key=lambda entry: (-entry["total"][order], entry["statement"]))
    shown = chosen[: request.top] if request.top else chosen
    _complete(traces, shown)
    whole = sum(entry["total"]["elapsed_ns"] for entry in found.values())
    for entry in shown:
        entry["share"] = entry["total"]["elapsed_ns"] / whole if whole else 0.0
    body = {
        "statements": shown,
        "left_out": _left_out(chosen[len(shown) :]),
        "totals": _totals(list(found.values())),
        "request": {"sort": request.sort, "merge_literals": request.merge_literals},
        "findings": findings(traces),
    }
    return cast("StatementsPage", page("sql", traces, body))


def _keys(traces: Traces, merge: bool) -> None:
    """Create the table `keys`: the key under which each statement is counted, its text, user and depth."""
    several = "count(*) over (partition by s.force_key) > 1 and s.force_key is not null"
    key = f"case when {several} then s.force_key else s.statement end" if merge else "s.statement"
    traces.connection.execute(
        f"""
        create or replace temp table keys as
        with seen as (
          select statement, min(depth) as depth, min(user_id) as user_id, min(line) as line
          from calls group by statement)
        select seen.statement, coalesce({key}, seen.statement, '') as key, s.sqlid, s.text,
               s.force_match, s.force_key, s.command, coalesce(s.user_id, seen.user_id) as user_id,
               seen.depth, coalesce(s.first_file, 0) as file,
               coalesce(s.first_line, seen.line) as line
        from seen left join statements s on s.statement = seen.statement
        """  # noqa: S608
    )


def _by_key(rows: list[Row]) -> dict[str, Entry]:
    """Combine rows, one per statement and step, into one entry per statement."""
    found: dict[str, Entry] = {}
    for row in rows:
        entry = found.setdefault(row["key"], {"statement": row["key"], "steps": []})
        entry["steps"].append(cast("Step", {name: row[name] for name in ("step", *_FIGURES)}))
    for entry in found.values():
        entry["steps"].sort(key=lambda step: STEPS.index(step["step"]))
        entry["total"] = _total(entry["steps"])
    return found


def _total(steps: list[Step]) -> Total:
    total = _sum([step for step in steps if step["step"] != "close"])
    closed = _sum([step for step in steps if step["step"] == "close"])
    return {
        **total,
        "close_calls": closed["calls"],
        "close_elapsed_ns": closed["elapsed_ns"],
        "executions": next((step["calls"] for step in steps if step["step"] == "execute"), 0),
    }


def _sum(rows: Sequence[Figures]) -> Figures:
    return cast("Figures", {name: sum(row[name] for row in rows) for name in _FIGURES})


def _describe(traces: Traces, found: dict[str, Entry]) -> None:
    """Add text, command, user, depth and place of each statement to its entry."""
    known: dict[str, list[Row]] = {}
    for row in traces.rows("select * from keys order by file, line"):
        known.setdefault(row["key"], []).append(row)
    for key, rows in known.items():
        first = rows[0]
        is_merged = len(rows) > 1 and first["force_match"]
        found[key] |= {
            "sqlid": first["sqlid"],
            "text": first["force_match"] if is_merged else first["text"],
            "command": first["command"],
            "user_id": first["user_id"],
            "depth": min(row["depth"] for row in rows),
            "recursive": min(row["depth"] for row in rows) > 0,
            "variants": [row["statement"] for row in rows],
            "place": f"{traces.path_of(first['file'])}:{first['line']}",
        }


def _left_out(entries: list[Entry]) -> LeftOut:
    return {**_sum([entry["total"] for entry in entries]), "statements": len(entries)}


def _is_wanted(entry: Entry, request: Request) -> bool:
    if request.statement:
        return request.statement in (entry["statement"], *entry["variants"])
    is_sys = entry["recursive"] and entry["user_id"] in (0, None)
    return request.recursive or not is_sys


def _complete(traces: Traces, entries: list[Entry]) -> None:
    """Add waits, plans, callers and called statements to the entries shown, with one query of each kind for all."""
    keys = [entry["statement"] for entry in entries]
    traces.connection.execute("create or replace temp table shown as select unnest($1::varchar[]) as key", [keys])
    waits = _waits(traces)
    plans = plans_by_key(traces)
    traces.connection.execute(_RELATIONS)
    parents, children = _relatives(traces, "caller", "called"), _relatives(traces, "called", "caller")
    for entry in entries:
        key = entry["statement"]
        entry |= {
            "waits": waits.get(key, []),
            "plans": plans.get(key, []),
            "parents": parents.get(key, []),
            "children": children.get(key, []),
        }


def _of_each(rows: list[Row]) -> dict[str, list[Row]]:
    """Group rows by their column `of`, which is removed from them."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.pop("of"), []).append(row)
    return found


def _waits(traces: Traces) -> dict[str, list[Wait]]:
    found = _of_each(
        traces.rows(
            """
            select k.key as of, event, any_value(class) as class, call is not null as inside,
                   count(*) as count, sum(elapsed_ns)::bigint as total_ns,
                   median(elapsed_ns)::bigint as p50_ns,
                   quantile_disc(elapsed_ns, 0.99)::bigint as p99_ns, max(elapsed_ns) as max_ns
            from waits w join keys k on k.statement is not distinct from w.statement
            where k.key in (select key from shown)
            group by k.key, event, call is not null order by inside desc, total_ns desc, event
            """
        )
    )
    return cast("dict[str, list[Wait]]", found)


# Callers and called statements, by statement: few rows, regardless of the number of calls.
_RELATIONS = """
create or replace temp table relations as
select p.statement as caller, c.statement as called, count(*) as calls, sum(c.elapsed_ns)::bigint as elapsed_ns
from (select statement, parent, elapsed_ns from calls where parent is not null) c
join (select statement, call from calls) p on p.call = c.parent
group by all
"""


def _relatives(traces: Traces, wanted: str, given: str) -> dict[str, list[Relative]]:
    """Return the statements that called those shown (`wanted` is "caller") or were called by them ("called")."""
    found = _of_each(
        traces.rows(
            f"""
            select g.key as of, w.key as statement, any_value(w.text) as text, sum(r.calls)::bigint as calls,
                   sum(r.elapsed_ns)::bigint as elapsed_ns
            from relations r
            join keys w on w.statement is not distinct from r.{wanted}
            join keys g on g.statement is not distinct from r.{given}
            where g.key in (select key from shown) and w.key <> g.key
            group by g.key, w.key order by elapsed_ns desc, w.key
            """  # noqa: S608
        )
    )
    return cast("dict[str, list[Relative]]", found)


def _totals(entries: list[Entry]) -> dict[str, Totals]:
    """Return two call tables: over all statements of the client, and over all recursive ones."""
    totals: dict[str, Totals] = {}
    for name, wanted in (("client", False), ("recursive", True)):
        mine = [entry for entry in entries if entry["recursive"] is wanted]
        steps: dict[str, list[Step]] = {step: [] for step in STEPS}
        for entry in mine:
            for step in entry["steps"]:
                steps[step["step"]].append(step)
        totals[name] = {
            "statements": len(mine),
            "steps": [{"step": step, **_sum(rows)} for step, rows in steps.items() if rows],
            "total": _sum([entry["total"] for entry in mine]),
        }
    return totals
