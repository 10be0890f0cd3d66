"""Division of the response time of a set of traces into strata: repeated work of one kind, in time order.

A stratum is one kind of call of one statement, or the round trips of one statement, or one event between calls.
`stats.stratified` explains what can be concluded from strata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dbdyno.study.analysis.traces.account import ROUND_TRIP
from dbdyno.study.analysis.traces.batches import batch_numbers, batched_rows, even_batches
from dbdyno.study.analysis.traces.turns import ROWS, arrays, free_turns
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    from dbdyno.stats.stratified import Stratum
    from dbdyno.study.analysis.traces.batches import Ints

BATCHES = 20
"""Number of batches in a stratum; a stratum with fewer calls or waits has fewer batches."""
_NO_STRATUM = -1
_SUMS = "turn_sums"
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
_TURN_CODES = """
select coalesce(o.owner_code, -1)::integer as owner_code, k.kind_code::integer as kind_code,
       s.grouped::integer as grouped
from turn_strata s
join turn_kinds k on k.event is not distinct from s.event and k.class is not distinct from s.class
left join turn_owners o on o.owner = s.owner
"""
"""Query of the strata of waits between calls, with the numbers of owner and kind that the waits have."""
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
    _add_turns(traces)
    free_turns(traces)
    _add_calls(traces)


def _add_turns(traces: Traces) -> None:
    """Add the batches of the waits between calls, which are arrays already: a query would copy them."""
    import numpy as np

    strata, waits = arrays(traces, _TURN_CODES), traces.arrays[ROWS]
    if not strata["grouped"].size:
        return
    owner, kind = waits["owner_code"], waits["kind_code"]
    kinds = int(kind.max()) + 1
    numbers = np.full((int(owner.max()) + 2) * kinds, _NO_STRATUM, dtype=np.int32)
    numbers[(strata["owner_code"] + 1) * kinds + strata["kind_code"]] = strata["grouped"]
    grouped = numbers[(owner + 1) * kinds + kind]
    grouped[waits["is_idle"]] = _NO_STRATUM
    chosen = np.flatnonzero(grouped != _NO_STRATUM)
    grouped = grouped[chosen]
    batch = batch_numbers(grouped, waits["started_ns"][chosen], waits["line"][chosen], _batches)
    at = grouped * BATCHES + batch
    size = np.bincount(at)
    there = np.flatnonzero(size)
    sums = {
        "grouped": there // BATCHES,
        "batch": there % BATCHES,
        "ns": np.bincount(at, weights=waits["elapsed_ns"][chosen])[there],
        "cpu_ns": np.zeros(there.size),
        "size": size[there].astype(np.float64),
    }
    traces.register(_SUMS, sums)
    _insert(traces, _SUMS, "turn_strata")
    traces.unregister(_SUMS)


def _add_calls(traces: Traces) -> None:
    """Add the batches of the calls."""
    with batched_rows(traces, _CALLS, _batches) as rows:
        sums = "sum(ns)::double as ns, sum(cpu_ns)::double as cpu_ns, count(*)::double as size"
        _insert(traces, f"(select grouped, batch, {sums} from {rows} group by all)", "call_strata")  # noqa: S608


def _batches(count: int) -> Ints:
    return even_batches(count, BATCHES)


def _insert(traces: Traces, sums: str, strata_of: str) -> None:
    """Insert the sums of batches, with the strata that their numbers stand for."""
    traces.connection.execute(
        f"""
        insert into batches select {_KEY}, batch, ns, cpu_ns, size
        from {sums} join (select distinct grouped, {_KEY} from {strata_of}) using (grouped)
        """  # noqa: S608
    )
