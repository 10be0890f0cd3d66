"""Operational laws checked on a run: identities between counted quantities, independent of any distribution.

    Little         sessions in a transaction = throughput x a transaction's time, at most the arm's sessions
    utilisation    CPU of servers and load = their share of the host's busy processors, at most 100 %
    forced flow    syncs of the log that were timed, and commits that clients saw = those that the server counted
    Little         requests at the busiest disk = their rate x their time

A law that does not hold points to an error of the measurement, or to activity that it missed. The first law is known
for each arm in a closed loop, the others for the whole run, because the host's activity is not divided by arm. (Denning
and Buzen 1978.)
"""

from __future__ import annotations

from typing import Any

from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.contract.parts import LawRow
from dbdyno.study.analysis.contract.rows import Caution
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

TOLERANCE = 0.02
"""Relative difference up to which a law holds."""
FLOW_TOLERANCE = 0.05
IDLE = 0.10
"""Share of sessions' time between transactions above which the client is reported as part of the measurement."""
OTHERS = 0.05
"""Share of the processors used by other programs above which that use is reported."""

LAG_NS = 1_000_000_000
"""Maximum delay of the counters of PostgreSQL's sessions at either end of the measured time [ns]."""
LONG_NS = 20 * LAG_NS
"""Measured time above which the counters of PostgreSQL's sessions are compared [ns]."""
DISK_TOLERANCE = 0.10

_HOST = """
with spans as (
  select arm, block, metric, max(value) - min(value) as ns from metrics
  where source = '/proc/stat' and metric like 'cpu\\_%' escape '\\' and list_contains($1::uinteger[], block)
  group by all having count(*) > 1
)
select sum(ns) filter (metric not in ('cpu_idle', 'cpu_iowait')), sum(ns) from spans
"""
_SYNCS = """
select (select count(*) from waits where event = 'WALSync' and fidelity = 'exact'
          and list_contains($1::uinteger[], block)),
  (select sum(value) from (select max(value) - min(value) as value from metrics
     where source = 'pg_stat_wal' and metric = 'wal_sync' and list_contains($1::uinteger[], block)
     group by arm, block, object having count(*) > 1))
"""

_COMMITS = """
select count(*) filter (kind = 'commit'), count(*) filter (kind = 'exec'), count(*) filter (kind = 'transaction'),
  count(*) filter (kind = 'rollback')
from calls where error is null and list_contains($1::uinteger[], block)
"""
_COUNTED_COMMITS = """
select sum(value) from (select max(value) - min(value) as value from metrics
  where source = 'pg_stat_database' and metric = 'xact_commit' and list_contains($1::uinteger[], block)
  group by arm, block, object having count(*) > 1)
"""
_DISKS = """
with spans as (
  select block, object, metric, max(value) - min(value) as value, max(at_ns) - min(at_ns) as wall_ns from metrics
  where source = '/proc/diskstats' and list_contains($1::uinteger[], block) group by all having count(*) > 1
)
select object, sum(value) filter (metric = 'busy_time'), sum(value) filter (metric = 'weighted_time'),
  sum(value) filter (metric in ('read_time', 'write_time', 'flush_time')),
  sum(value) filter (metric in ('reads', 'writes', 'flushes')), sum(wall_ns) filter (metric = 'busy_time')
from spans group by object order by 2 desc nulls last, length(object) limit 1
"""


def laws_of_run(connection: Any, run: Run, measures: Measures) -> list[LawRow]:
    """Return the laws of a run, each with both sides; `arm` is None if a law applies to the whole run."""
    from dbdyno.study.analysis.figure_data.pictures import has_table

    about = run.manifest.arms
    rows = [_little(arm) for arm in measures.arms if not about[arm.number].get("rate_per_s")]
    blocks = measures.arms[0].blocks
    found = [row for row in rows if row is not None]
    if not has_table(connection, "metrics"):
        return found
    listed = [[block.index for block in blocks]]
    busy, whole = connection.execute(_HOST, listed).fetchone() or (None, None)
    if busy and whole and (row := _utilisation(blocks, float(busy), float(whole))) is not None:
        found.append(row)
    found += [row for row in (_disk(connection, listed), _commits(connection, listed, blocks)) if row is not None]
    if has_table(connection, "waits"):
        timed, counted = connection.execute(_SYNCS, listed).fetchone() or (0, None)
        if timed and counted:
            found.append(_flow(float(timed), float(counted)))
    return found


def _little(arm: ArmMeasures) -> LawRow | None:
    """Return Little's law for an arm in a closed loop; None if the transaction time was not measured."""
    import numpy as np

    rate, mean_ns, count = (arm.values[name] for name in ("throughput", "mean", "count"))
    known = np.isfinite(rate) & np.isfinite(mean_ns) & (count > 0)
    if arm.operation != "transaction" or not known.any():
        return None
    inside = float(np.average(rate[known] * mean_ns[known] / 1e9, weights=count[known]))
    idle = 1 - inside / arm.sessions
    says = f"a session of {arm.name} spent {max(idle, 0.0):.1%} of its time between two transactions"
    if idle > IDLE:
        says += ": the client is part of what was measured"
    return {
        "arm": arm.number,
        "law": "Little",
        "left": inside,
        "right": float(arm.sessions),
        "holds": inside <= arm.sessions * (1 + TOLERANCE),
        "sentence": f"{says}.",
    }


def _utilisation(blocks: list[Block], busy: float, whole: float) -> LawRow | None:
    """Return the utilisation law for the run; None if the CPU time of the server's processes is unknown."""
    reports = [own for block in blocks for own in block.report.get("arms", [])]
    walls = [block.report.get("wall_ns") for block in blocks]
    if not reports or not all("on_cpu_ns" in own for own in reports) or not all(walls):
        return None
    own_ns = sum(own["on_cpu_ns"] for own in reports) + sum(block.report.get("cpu_ns", 0) for block in blocks)
    share = busy / whole
    # The counters span a little more than the load; both are shares of the processors' time.
    used = own_ns / whole
    others = share - used
    load = sum(block.report.get("cpu_ns", 0) for block in blocks) / whole
    says = (
        f"{share:.0%} of the processors' time was in use, {used - load:.0%} by the sessions' server processes and"
        f" {load:.0%} by the load"
    )
    if others > OTHERS:
        says += f"; {others:.0%} by others (the server's other processes, other programs, the kernel)"
    return {
        "arm": None,
        "law": "utilisation",
        "left": used,
        "right": share,
        "holds": used <= share * (1 + TOLERANCE) + TOLERANCE,
        "sentence": f"{says}.",
    }


def _disk(connection: Any, listed: list[list[int]]) -> LawRow | None:
    """Return Little's law for the busiest disk; None if no disk was busy."""
    row = connection.execute(_DISKS, listed).fetchone()
    if row is None or not all(row):
        return None
    name, busy, queued, spent, requests, wall = row
    inside, present = spent / wall, queued / wall
    says = (
        f"{name} was busy {busy / wall:.0%} of the time: {requests / wall * 1e9:,.0f} requests a second of"
        f" {spent / requests / 1e6:.3g} ms each mean {inside:.3g} requests in progress"
    )
    return {
        "arm": None,
        "law": "Little",
        "left": inside,
        "right": present,
        "holds": abs(inside - present) <= DISK_TOLERANCE * max(inside, present) and busy <= wall * (1 + TOLERANCE),
        "sentence": f"{says}.",
    }


def _commits(connection: Any, listed: list[list[int]], blocks: list[Block]) -> LawRow | None:
    """Return the forced flow law for commits: the number that clients saw and the number that the server counted.

    The result is None if scripts with and without explicit transactions are mixed, or if the run is too short for
    counters that are published late.
    """
    wall_ns = sum(block.report.get("wall_ns") or 0 for block in blocks)
    row = connection.execute(_COUNTED_COMMITS, listed).fetchone()
    counted = row[0] if row else None
    if not counted or wall_ns < LONG_NS:
        return None
    commits, statements, transactions, rollbacks = connection.execute(_COMMITS, listed).fetchone()
    if rollbacks or 0 < commits < transactions:
        return None
    seen = float(commits or statements or transactions)
    off = seen / counted - 1
    says = f"Clients saw {seen:,.0f} commits; the server counted {counted:,.0f} in their database"
    return {
        "arm": None,
        "law": "forced flow",
        "left": seen,
        "right": float(counted),
        "holds": abs(off) <= max(FLOW_TOLERANCE, 2 * LAG_NS / wall_ns),
        "sentence": f"{says} ({off:+.1%}).",
    }


def warnings(rows: list[LawRow]) -> list[Caution]:
    """Return a warning for each law that does not hold."""
    return [
        {
            "code": "law",
            "text": f"{row['law']} does not hold, so something was not counted: {row['sentence']}",
            "next": "look for other clients of this database and other programs on this host, and run again",
        }
        for row in rows
        if not row["holds"]
    ]


def _flow(timed: float, counted: float) -> LawRow:
    """Return the forced flow law for the log: the number of timed syncs and the number that the server counted."""
    off = timed / counted - 1
    return {
        "arm": None,
        "law": "forced flow",
        "left": timed,
        "right": counted,
        "holds": abs(off) <= FLOW_TOLERANCE,
        "sentence": f"{timed:,.0f} syncs of the log were timed, the server counted {counted:,.0f} ({off:+.1%}).",
    }
