"""Race of a flash log, in a model's cells or on two paths of this host: which copy of a redo write finished first.

On this host the first path is the disk, and the second path is the flash. A cell counts, under Oracle's names, the
writes for which the disk was first (FL_DISK_FIRST), those for which flash was first (FL_FLASH_FIRST), and those in
which the disk's copy was an outlier and flash's was not (FL_PREVENTED_OUTLIERS). Counters are read at a block's start
and end; their difference belongs to the block. A mirrored write races once in each cell that has a copy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dbdyno.study.analysis.contract.parts import RaceRow

if TYPE_CHECKING:
    from dbdyno.study.analysis.measured.measures import Measures

COUNTERS = {
    "disk_first": "FL_DISK_FIRST",
    "flash_first": "FL_FLASH_FIRST",
    "prevented": "FL_PREVENTED_OUTLIERS",
    "outliers": "FL_ACTUAL_OUTLIERS",
    "flash_outliers": "FL_FLASH_ONLY_OUTLIERS",
}

_SQL = """
with counter as (
  select arm, block, source, object_type, object, metric,
    max_by(value, at_ns) - case when count(*) > 1 then min_by(value, at_ns) else 0 end as value
  from metrics where (source = 'probe' or source like 'cell:%')
    and metric in (select unnest($1::varchar[])) and block in (select unnest($2::int[]))
  group by all
)
select arm, block, metric, sum(value) from counter group by all
"""


def rows_of_run(connection: Any, measures: Measures, level: float) -> list[RaceRow]:
    """Return a row per arm with a race; empty if no cell raced.

    A row has the counters over all blocks that count, and the share of races that flash won with its interval over
    blocks.
    """
    blocks = [block.index for block in measures.arms[0].blocks]
    found = connection.execute(_SQL, [list(COUNTERS.values()), blocks]).fetchall()
    names = {metric: name for name, metric in COUNTERS.items()}
    rows: list[RaceRow] = []
    for at, arm in enumerate(measures.arms):
        by_block: dict[int, dict[str, float]] = {}
        for own, block, metric, value in found:
            if own == arm.name:
                by_block.setdefault(block, {})[names[metric]] = value
        raced = [c for c in by_block.values() if _races(c)]
        if raced:
            totals = {name: int(sum(c.get(name, 0) for c in raced)) for name in COUNTERS}
            share, low, high = share_over_blocks([c.get("flash_first", 0) / _races(c) for c in raced], level)
            rows.append(
                {
                    "arm": at,
                    "disk_first": totals["disk_first"],
                    "flash_first": totals["flash_first"],
                    "prevented": totals["prevented"],
                    "outliers": totals["outliers"],
                    "flash_outliers": totals["flash_outliers"],
                    "races": int(sum(map(_races, raced))),
                    "share": share,
                    "low": low,
                    "high": high,
                    "blocks": len(raced),
                    "level": level,
                }
            )
    return rows


def _races(counters: dict[str, float]) -> float:
    return counters.get("disk_first", 0) + counters.get("flash_first", 0)


def share_over_blocks(values: list[float], level: float) -> tuple[float, float, float]:
    """Return the mean share over blocks with Student's interval, limited to 0 to 1; for one block both ends are NaN."""
    from dbdyno.stats.means import mean_interval

    mean, low, high = mean_interval(values, level)
    return mean, (low if math.isnan(low) else max(low, 0.0)), (high if math.isnan(high) else min(high, 1.0))
