"""Measurements of a run's base arm for the rules on benchmarks, from its evidence and analysis.

Without analysis.json, or without any complete block, there is nothing to read; the rules that need it report that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.advise.kinds import Measurements
from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run

NEAR = 0.02
"""Share of a transaction's time within which the starts of two sessions count as simultaneous."""
_STARTS = """
with mine as (
  select session, block, started_ns, elapsed_ns from calls
  where arm = $1 and kind = 'transaction' and error is null and block in (select unnest($2::int[]))
), sorted as (
  select elapsed_ns, session <> lag(session) over w as other, started_ns - lag(started_ns) over w as since,
    block = lag(block) over w as same, avg(elapsed_ns) over () as mean
  from mine window w as (order by block, started_ns)
)
select count(*) filter (other and same and since < $3 * mean)::double / nullif(count(*) filter (same), 0) from sorted
"""
_BLOCKS = """
select block, count(*) filter (error is null), sum(elapsed_ns) filter (error is null)::double, sum(elapsed_ns)::double
from calls
where arm = $1 and kind = 'transaction' and block in (select unnest($2::int[])) group by 1 order by 1
"""
_WAITS = """
select class, event, sum(elapsed_ns)::double from waits
where arm = $1 and object in ('client backend', 'session', 'client') and block in (select unnest($2::int[]))
group by 1, 2 order by 3 desc
"""
_COUNTED = """
select block, source, metric, sum(grown), sum(last) from (
  select block, source, object, metric, max(value) - min(value) as grown, arg_max(value, at_ns) as last
  from metrics where (arm = $1 or arm = '') and block in (select unnest($2::int[]))
    and source in ('pg_stat_user_tables', 'pg_stat_bgwriter', 'pg_stat_checkpointer', 'pg_stat_database', 'pg_stat_wal')
  group by all having count(*) > 1)
group by all
"""
_CHECKPOINTS = ("checkpoints_timed", "checkpoints_req", "num_timed", "num_requested")
_WRITTEN = ("tup_inserted", "tup_updated", "tup_deleted")


def read(run: Run) -> Measurements | None:
    """Return the measurements, or None if the run has no analysis or no complete block yet."""
    try:
        analysis = json.loads((run.path / "analysis.json").read_text())
        connection, _ = connect(run)
    except (OSError, ValueError, EvidenceError):
        return None
    with connection:
        return _measurements_of(run, analysis, connection)


def _measurements_of(run: Run, analysis: Mapping[str, Any], connection: Any) -> Measurements | None:
    blocks = [block for block in run.blocks() if block.kind == "measure"]
    listed, arm = [block.index for block in blocks], run.manifest.arms[0]
    views = {row[0] for row in connection.execute("select view_name from duckdb_views()").fetchall()}
    if not blocks or "calls" not in views:
        return None
    rows = connection.execute(_BLOCKS, [arm["name"], listed]).fetchall()
    sessions = int(arm["sessions"])
    near = connection.execute(_STARTS, [arm["name"], listed, NEAR]).fetchone()[0] if sessions > 1 else None
    counted = connection.execute(_COUNTED, [arm["name"], listed]).fetchall() if "metrics" in views else []
    resources = analysis.get("resources") or []
    reads = [row["read_calls"] for row in resources if row.get("read_calls") is not None]
    reports = [block.report for block in blocks]
    wall, cpu = (sum(one.get(name) or 0 for one in reports) for name in ("wall_ns", "cpu_ns"))
    waits = connection.execute(_WAITS, [arm["name"], listed]).fetchall() if "waits" in views else []
    busy = sum(row[3] or 0.0 for row in rows)
    return Measurements(
        sessions=sessions,
        arms=len(run.manifest.arms),
        blocks=len(blocks),
        warmup_blocks=sum(block.kind == "warmup" for block in run.blocks()),
        transactions=sum(int(row[1]) for row in rows),
        mean_ns=_mean(rows),
        per_s=tuple(row[1] * sessions * 1e9 / row[2] for row in rows if row[2]),
        reads=max(reads) if reads else None,
        waits=tuple((kind, event, min(spent / busy, 1.0)) for kind, event, spent in waits if busy),
        client_cores=cpu / wall if wall else None,
        client_threads=int(max((one.get("threads") or 0 for one in reports), default=0)) or None,
        cores=os.cpu_count() if not run.manifest.host else None,
        near=near,
        **_of_server(counted, blocks),
    )


def _mean(rows: Sequence[tuple[Any, ...]]) -> float | None:
    count = sum(row[1] for row in rows)
    return sum(row[2] or 0.0 for row in rows) / count if count else None


def _of_server(counted: list[tuple[Any, ...]], blocks: Sequence[Any]) -> JsonObject:
    """Return, by block, rows read per transaction and live rows; also rows written per transaction, and checkpoints."""
    if not counted:
        return {}
    count = {block.index: sum(own["transactions"] for own in block.report["arms"]) for block in blocks}
    read: dict[int, float] = {}
    there: dict[int, float] = {}
    written = checkpoints = 0.0
    for block, source, metric, grown, last in counted:
        if source == "pg_stat_user_tables" and metric in ("seq_tup_read", "idx_tup_fetch"):
            read[block] = read.get(block, 0.0) + grown / max(count[block], 1)
        elif source == "pg_stat_user_tables" and metric == "n_live_tup":
            there[block] = last
        elif metric in _CHECKPOINTS:
            checkpoints += grown
        elif source == "pg_stat_database" and metric in _WRITTEN:
            written += grown
    every = max(sum(count.values()), 1)
    return {
        "rows_read": tuple(read.get(at, 0.0) for at in sorted(count)),
        "rows_there": tuple(there.get(at, 0.0) for at in sorted(count)),
        "written": written / every,
        "checkpoints": int(checkpoints),
    }
