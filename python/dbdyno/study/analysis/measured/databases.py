"""Share of a model's storage that each of several databases gets.

The values are transactions, disk I/O with each database's share, and the time that I/O waited in the cells' queues. A
run reads the cells' counters by database three times: at the end of the warm-up, when the first session of the studied
database ends, and at the end of the run. The time between the first two readings counts, during which all sessions of
all databases work. Cells count each copy of a mirrored write.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dbdyno.study.analysis.contract.rows import DatabaseRow

if TYPE_CHECKING:
    from dbdyno.study.analysis.measured.measures import Measures

COUNTERS = {
    "small": "DB_IO_RQ_SM",
    "large": "DB_IO_RQ_LG",
    "wait_small_ms": "DB_IO_WT_SM",
    "wait_large_ms": "DB_IO_WT_LG",
    "flash": "DB_FD_IO_RQ_SM",
    "flash_large": "DB_FD_IO_RQ_LG",
    "transactions": "transactions",
}

_SQL = """
with reading as (
  select arm, block, source, object, metric, value, at_ns, row_number() over (
      partition by arm, block, source, object, metric order by at_ns) as number
  from metrics where block in (select unnest($2::int[])) and (
    (source = 'model' and object_type = 'database')
    or (object_type = 'IORM_DATABASE' and metric in (select unnest($1::varchar[]))))
)
select arm, block, object, metric,
  sum(case number when 1 then -value when 2 then value else 0 end),
  max(at_ns) filter (number = 2) - max(at_ns) filter (number = 1)
from reading
where object in (select distinct object from metrics where object_type = 'database')
group by all order by object
"""


def rows_of_run(connection: Any, measures: Measures, level: float) -> list[DatabaseRow]:
    """Return a row per arm and database, the studied database first; empty if a machine has one database.

    A row has transactions and I/Os per second of virtual time (`disk_per_s`, `flash_per_s`), the database's `share` of
    the disks' I/Os with the interval over blocks, and `wait_ns`, the mean time that an I/O waited in a cell's queue.
    """
    blocks = [block.index for block in measures.arms[0].blocks]
    found = connection.execute(_SQL, [list(COUNTERS.values()), blocks]).fetchall()
    names = {metric: name for name, metric in COUNTERS.items()}
    by_arm: dict[str, dict[int, dict[str, dict[str, float]]]] = {}
    for arm, block, database, metric, value, span_ns in found:
        own = by_arm.setdefault(arm, {}).setdefault(block, {}).setdefault(database, {})
        own[names[metric]] = value
        own["span_ns"] = span_ns
    rows: list[DatabaseRow] = []
    for at, arm in enumerate(measures.arms):
        looks = list(by_arm.get(arm.name, {}).values())
        for database in sorted({name for look in looks for name in look}, key=_sort_key):
            rows.append({"arm": at, "database": database, **_row(looks, database, level)})
    return rows


def _sort_key(name: str) -> tuple[bool, str]:
    return name != "ORCL", name


def _row(looks: list[dict[str, dict[str, float]]], database: str, level: float) -> DatabaseRow:
    from dbdyno.study.analysis.measured.race import share_over_blocks

    own = [look[database] for look in looks]

    def total(*counters: str) -> float:
        return sum(look.get(name, 0.0) for look in own for name in counters)

    span_s = total("span_ns") / 1e9
    waited_ms, disk = total("wait_small_ms", "wait_large_ms"), total("small", "large")
    shares = [_disk(look[database]) / whole for look in looks if (whole := sum(map(_disk, look.values())))]
    share, low, high = share_over_blocks(shares, level) if shares else (math.nan,) * 3
    return {
        "transactions_per_s": total("transactions") / span_s,
        "disk_per_s": disk / span_s,
        "flash_per_s": total("flash", "flash_large") / span_s,
        "share": share,
        "low": low,
        "high": high,
        "level": level,
        "blocks": len(looks),
        "wait_ns": waited_ms * 1e6 / disk if disk else None,
    }


def _disk(counters: dict[str, float]) -> float:
    return counters.get("small", 0.0) + counters.get("large", 0.0)
