"""Division of the response time of a set into strata: repeated work by kind, in time order.

A stratum is one kind of call of one statement, or the round trips of one statement, or one event between calls.
`stats.stratified` says what may be concluded from them. Needs the tables of `account`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dbdyno.study.analysis.traces.account import ROUND_TRIP
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    from dbdyno.stats.stratified import Stratum

BATCHES = 20
"""Number of batches of a stratum; fewer if it has fewer parts."""
What = Literal["response", "database", "cpu"]
_PARTS = f"""
  select owner, kind as name, true as is_call, false as is_network,
         coalesce(self_elapsed_ns, elapsed_ns) as ns, coalesce(self_cpu_ns, cpu_ns, 0) as cpu_ns, started_ns, line
  from owned
  union all
  select owner, case when class = 'network' then '{ROUND_TRIP}' else event end, false,
         coalesce(class = 'network', false), elapsed_ns, 0, started_ns, line
  from turns where not is_idle
"""  # noqa: S608
"""All parts of the response time, each with the name of its stratum within its owner."""
_KEY = "owner, name, is_call, is_network"
_CHOSEN = {"response": "true", "database": "not is_network", "cpu": "is_call"}


def strata(traces: Traces, what: What) -> dict[str, list[Stratum]]:
    """Return the strata of a total by their owner."""
    import numpy as np

    from dbdyno.stats.stratified import Stratum

    _make_batches(traces)
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


def _make_batches(traces: Traces) -> None:
    """Create the table `batches`, the sums of each batch of each stratum, unless `account` has left it valid."""
    traces.connection.execute(
        f"""
        create temp table if not exists batches as
        with cut as (
          select {_KEY}, ns, cpu_ns, ntile({BATCHES}) over (partition by {_KEY} order by started_ns, line) as batch
          from ({_PARTS}))
        select {_KEY}, batch, sum(ns)::double as ns, sum(cpu_ns)::double as cpu_ns, count(*)::double as size
        from cut group by all
        """  # noqa: S608
    )
