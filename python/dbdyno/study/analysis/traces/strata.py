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
_CALLS = "select owner, owner || ' ' || kind as stratum, {time} as ns, started_ns, line from owned"
_BETWEEN = (
    "select owner, owner || ' between ' || case when class = 'network' then '{round_trip}' else event end as stratum,"
    " elapsed_ns as ns, started_ns, line from turns where not is_idle"
)
_SOURCES = {
    "response": f"{_CALLS} union all {_BETWEEN}",
    "database": f"{_CALLS} union all {_BETWEEN} and coalesce(class, '') <> 'network'",
    "cpu": _CALLS,
}


def strata(traces: Traces, what: What) -> dict[str, list[Stratum]]:
    """Return the strata of a total by their owner."""
    import numpy as np

    from dbdyno.stats.stratified import Stratum

    time = "coalesce(self_cpu_ns, cpu_ns, 0)" if what == "cpu" else "coalesce(self_elapsed_ns, elapsed_ns)"
    source = _SOURCES[what].format(time=time, round_trip=ROUND_TRIP)
    rows = traces.connection.execute(
        f"""
        with cut as (
          select owner, stratum, ns, ntile({BATCHES}) over (partition by stratum order by started_ns, line) as batch
          from ({source})),
        summed as (
          select any_value(owner) as owner, stratum, batch, sum(ns)::double as total, count(*)::double as size
          from cut group by stratum, batch)
        select any_value(owner), list(total order by batch), list(size order by batch)
        from summed group by stratum order by stratum
        """  # noqa: S608
    ).fetchall()
    found: dict[str, list[Stratum]] = {}
    for owner, totals, sizes in rows:
        found.setdefault(owner, []).append(Stratum(np.array(totals), np.array(sizes)))
    return found
