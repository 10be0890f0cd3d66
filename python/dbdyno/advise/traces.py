"""Evidence of Oracle trace files: totals, events and statements of their import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.advise.facts import Facts
from dbdyno.trace.source import open_traces

SPILLS = ("direct path read temp", "direct path write temp")


@dataclass(frozen=True, slots=True)
class Traced:
    """Totals over all sessions of the traces: time without think time, transactions, changed rows, executions."""

    response_ns: int
    commits: int
    changed_rows: int
    executions: int


@dataclass(frozen=True, slots=True)
class TracedEvent:
    """Number and total time of the waits for one event."""

    name: str
    count: int
    ns: int


@dataclass(frozen=True, slots=True)
class TracedStatement:
    """A client's statement (depth 0): calls by kind, rows, time, round trips, waits for temporary files (`SPILLS`)."""

    identifier: str
    text: str
    parses: int
    hard_parses: int
    executions: int
    fetches: int
    rows: int
    ns: int
    parse_ns: int
    fetch_ns: int
    round_trip_ns: int
    spill_ns: int


_DML = "regexp_matches(ltrim(lower(s.text)), '^(insert|update|delete|merge)')"
_TOTALS = f"""
select (select coalesce(sum(elapsed_ns), 0) from calls where depth = 0)::bigint
    + (select coalesce(sum(elapsed_ns), 0) from waits where call is null and not coalesce(think, false)
       and event <> 'SQL*Net message from client')::bigint
    + (select coalesce(sum(elapsed_ns), 0) from waits where not coalesce(think, false)
       and event = 'SQL*Net message from client')::bigint as response_ns,
  (select count(*) from transactions where not coalesce(rollback, false) and not coalesce(read_only, false))
    as commits,
  (select coalesce(sum(c.rows), 0) from calls c join statements s using (statement)
   where c.depth = 0 and c.kind = 'exec' and {_DML})::bigint as changed_rows,
  (select count(*) from calls where depth = 0 and kind = 'exec') as executions
"""  # noqa: S608
_EVENTS = """
select event as name, count(*) as count, sum(elapsed_ns)::bigint as ns from waits
where not coalesce(think, false) group by 1 order by 3 desc, 1
"""
_BY_STATEMENT = """
with waited as (
  select statement, sum(elapsed_ns) filter (event = 'SQL*Net message from client') as trips,
    sum(elapsed_ns) filter (event in ('direct path read temp', 'direct path write temp')) as spills
  from waits where not coalesce(think, false) group by 1
)
select c.statement as identifier, any_value(s.text) as text, count(*) filter (c.kind = 'parse') as parses,
  coalesce(sum(c.misses) filter (c.kind = 'parse'), 0)::bigint as hard_parses,
  count(*) filter (c.kind = 'exec') as executions, count(*) filter (c.kind = 'fetch') as fetches,
  coalesce(sum(c.rows) filter (c.kind = 'fetch'), 0)::bigint as rows, sum(c.elapsed_ns)::bigint as ns,
  coalesce(sum(c.elapsed_ns) filter (c.kind = 'parse'), 0)::bigint as parse_ns,
  coalesce(sum(c.elapsed_ns) filter (c.kind = 'fetch'), 0)::bigint as fetch_ns,
  coalesce(any_value(t.trips), 0)::bigint as round_trip_ns, coalesce(any_value(t.spills), 0)::bigint as spill_ns
from calls c left join statements s using (statement) left join waited t on t.statement = c.statement
where c.depth = 0 and c.statement is not null group by 1 order by 8 desc, 1 limit 500
"""


def read(names: Sequence[str]) -> Facts:
    """Return the evidence of trace files, or of an imported set.

    Raises:
        TraceError: the traces cannot be read.
    """
    with open_traces(names) as traces:
        rows: dict[type, Sequence[object]] = {
            Traced: [Traced(**traces.rows(_TOTALS)[0])],
            TracedEvent: [TracedEvent(**row) for row in traces.rows(_EVENTS)],
            TracedStatement: [
                TracedStatement(**{**row, "text": row["text"] or ""}) for row in traces.rows(_BY_STATEMENT)
            ],
        }
    return Facts(", ".join(names[:3]), "trace", rows)


TRACES: frozenset[type] = frozenset((Traced, TracedEvent, TracedStatement))
"""Kinds of evidence that only traces have."""
