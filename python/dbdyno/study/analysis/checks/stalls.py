"""Search for gaps in which no session of a run got an answer: a stalled server or load generator.

Only blocks that can contain a stall are searched: those with a transaction that lasted as long as a stall, and those
that took longer than usual by at least that time.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.run import Block
from dbdyno.study.analysis.measured.measures import Measures

if TYPE_CHECKING:
    from dbdyno.stats.gates_in_time import Stall
    from dbdyno.study.analysis.figure_data.pictures import Latencies

USUAL = 0.9

# In an open loop a gap counts only if a transaction was waiting in it.
_SQL = """
with ends as (
  select block, slice, started_ns, intended_ns, started_ns + elapsed_ns as ended from calls
  where kind = 'transaction' and block in (select unnest($blocks::int[]))
), gaps as (
  select block, ended, intended_ns, coalesce(
      lag(ended) over (partition by block, slice order by ended),
      min(started_ns) over (partition by block, slice)) as since
  from ends
)
select block, since, (ended - since) / 1e9 from gaps
where ended - since >= $limit and (intended_ns is null or ended - intended_ns >= $limit)
"""


def usual_ns(latencies: Latencies) -> float:
    """Return the 90 % quantile of the latency in the arm where it is largest [ns]."""
    import numpy as np

    return max((float(np.quantile(own, USUAL)) for own in latencies if own.size), default=0.0)


def find(connection: Any, measures: Measures, begins_s: dict[int, float], limit_s: float) -> list[Stall]:
    """Return the stalls in the blocks that count."""
    from dbdyno.stats.gates_in_time import Stall

    blocks = {block.index: block for block in _candidates(measures, limit_s)}
    if not blocks:
        return []
    asked = {"blocks": list(blocks), "limit": round(limit_s * 1e9)}
    return [
        Stall(index, begins_s[index] + (since - blocks[index].started_ns) / 1e9, length)
        for index, since, length in connection.execute(_SQL, asked).fetchall()
    ]


def _candidates(measures: Measures, limit_s: float) -> list[Block]:
    blocks = measures.arms[0].blocks
    lengths = [block.report.get("wall_ns", 0) / 1e9 for block in blocks]
    usual = statistics.median(lengths)
    return [
        block
        for at, block in enumerate(blocks)
        if lengths[at] - usual >= limit_s or any(arm.values["max"][at] >= limit_s * 1e9 for arm in measures.arms)
    ]
