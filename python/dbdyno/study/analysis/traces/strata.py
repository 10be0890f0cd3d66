"""Division of the response time of a set of traces into strata: repeated work of one kind, in time order.

A stratum is one kind of call of one statement, or the round trips of one statement, or one event between calls.
`stats.stratified` explains what can be concluded from strata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dbdyno.study.analysis.traces.account import ROUND_TRIP
from dbdyno.study.analysis.traces.batches import batched_rows, even_batches
from dbdyno.study.analysis.traces.turns import free_turns
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    from dbdyno.stats.stratified import Stratum

BATCHES = 20
"""Number of batches in a stratum; a stratum with fewer calls or waits has fewer batches."""
What = Literal["response", "database", "cpu"]
_STRATA = f"""
create or replace temp table call_strata as
  select row_number() over (order by owner, name) - 1 as grouped, owner, name, true as is_call, false as is_network
  from (select distinct owner, kind as name from owned);
create or replace temp table turn_strata as
  select owner, event, class, dense_rank() over (order by owner, name, is_network) - 1 as grouped, name,
         false as is_call, is_network
  from (select distinct owner, event, class, case when class = 'network' then '{ROUND_TRIP}' else event end as name,
               coalesce(class = 'network', false) as is_network
        from turns where not is_idle);
"""  # noqa: S608
_CALLS = """
select s.grouped::integer as grouped, coalesce(self_elapsed_ns, elapsed_ns) as ns,
       coalesce(self_cpu_ns, cpu_ns, 0) as cpu_ns, started_ns, line
from owned o join call_strata s on s.owner = o.owner and s.name = o.kind
"""
_TURNS = """
select s.grouped::integer as grouped, t.elapsed_ns as ns, t.started_ns, t.line
from turns t join turn_strata s on s.owner = t.owner and s.event is not distinct from t.event
  and s.class is not distinct from t.class
where not t.is_idle
"""
"""Query of the waits between calls, each with the number of its stratum."""
_BATCHES = """
create or replace temp table batches (
  owner varchar, name varchar, is_call boolean, is_network boolean,
  batch integer, ns double, cpu_ns double, size double)
"""
_KEY = "owner, name, is_call, is_network"
_CHOSEN = {"response": "true", "database": "not is_network", "cpu": "is_call"}


def strata(traces: Traces, what: What) -> dict[str, list[Stratum]]:
    """Return the strata of a total by owner, read from the table that `make_batches` creates."""
    import numpy as np

    from dbdyno.stats.stratified import Stratum

    rows = traces.connection.execute(
        f"""
        select owner, list({"cpu_ns" if what == "cpu" else "ns"} order by batch), list(size order by batch)
        from batches where {_CHOSEN[what]} group by {_KEY}
        order by owner || case when is_call then ' ' else ' between ' end || name
        """  # noqa: S608
    ).fetchall()
    found: dict[str, list[Stratum]] = {}
    for owner, totals, sizes in rows:
        found.setdefault(owner, []).append(Stratum(np.array(totals), np.array(sizes)))
    return found


def make_batches(traces: Traces) -> None:
    """Create the table `batches` with the sums of each batch of each stratum, from the tables that `account` creates.

    The tables of `make_turns` are freed before the calls are read.
    """
    traces.connection.execute(_STRATA)
    traces.connection.execute(_BATCHES)
    _add_batches(traces, _TURNS, "turn_strata", "0")
    free_turns(traces)
    _add_batches(traces, _CALLS, "call_strata", "sum(cpu_ns)")


def _add_batches(traces: Traces, query: str, strata_of: str, cpu_ns: str) -> None:
    with batched_rows(traces, query, lambda count: even_batches(count, BATCHES)) as rows:
        sums = f"sum(ns)::double as ns, {cpu_ns}::double as cpu_ns, count(*)::double as size"
        traces.connection.execute(
            f"""
            insert into batches select {_KEY}, batch, ns, cpu_ns, size
            from (select grouped, batch, {sums} from {rows} group by all)
            join (select distinct grouped, {_KEY} from {strata_of}) using (grouped)
            """  # noqa: S608
        )
