"""Measures of the machine, the engine and each arm over time: CPU, disks, redo, transactions, blocks read, errors.

A stretch is the time between two readings of the counters: a turn of one arm or, if arms alternate in slices, a whole
block, which belongs to all of them (arm null). The resources of a transaction come from the sessions that ran it, and
errors from the operations themselves, so both always belong to one arm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.contract.parts import TimeSeries
from dbdyno.study.analysis.figure_data.pictures import has_table
from dbdyno.study.analysis.measured.measures import Measures
from dbdyno.study.analysis.measured.resources import BLOCKS, ON_CPU, counted_by_block
from dbdyno.study.analysis.measured.timeline import timeline

_CPU_IDLE = ("cpu_idle", "cpu_iowait")
_PARTITIONS = r"^(loop|ram|dm-|md|sr|zram)|^(nvme\d+n\d+p|mmcblk\d+p)\d+$|^([sv]d|xvd)[a-z]+\d+$"
"""Pattern of names in /proc/diskstats that would count bytes twice: partitions and stacked devices."""

_READINGS = """
select arm, block, source, metric, object, arg_min("value", at_ns), arg_max("value", at_ns), min(at_ns), max(at_ns)
from metrics
where kind = 'counter' and block in (select unnest($blocks::int[]))
  and (source = '/proc/stat' or (source = '/proc/diskstats' and not regexp_matches(object, $partitions))
       or source in ('pg_stat_wal', 'wal') or (source = 'pg_stat_database' and object_type = 'database')
       or (source = 'global status' and metric in (select unnest($own::varchar[]))))
group by all having max(at_ns) > min(at_ns)
"""

_RATES = (
    ("disk reads", "bytes/s", ("read_bytes",)),
    ("disk writes", "bytes/s", ("write_bytes",)),
    ("redo", "bytes/s", ("wal_bytes", "insert_bytes", "innodb_os_log_written")),
    ("transactions", "1/s", ("xact_commit", "xact_rollback", "com_commit", "com_rollback")),
    ("blocks read", "1/s", ("blks_read", "innodb_buffer_pool_reads")),
)
"""Name of a rate, its unit, and the counters that add up to it."""

_USED = (("storage reads of a transaction", "read_bytes"), ("storage writes of a transaction", "write_bytes"))
_TOUCHED = (("blocks of a transaction", "blocks"), ("temporary blocks of a transaction", "temp_blocks"))
"""Measures of an arm's own statements; `_USED` has the measures of its sessions."""


def over_time(connection: Any, run: Run, measures: Measures) -> list[TimeSeries]:
    """Return one entry per measure and arm; the list is empty if no counters were read.

    An entry has `measure`, `unit` (`share`, `ns`, `bytes`, `count`, `bytes/s`, `1/s`), `arm` (null: all arms), `at_s`,
    `seconds` (length of the stretch), and `value`.
    """
    blocks = measures.arms[0].blocks
    numbers = {arm.name: at for at, arm in enumerate(measures.arms)}
    at_s = timeline(blocks).begins_s
    started = {block.index: block.started_ns for block in blocks}
    points: dict[tuple[str, str, int | None], list[tuple[float, float, float]]] = defaultdict(list)
    stretches = _stretches(connection, list(started))
    spans = {
        (arm, block): (at_s[block] + max(0.0, (own.began_ns - started[block]) / 1e9), own.seconds)
        for (arm, block), own in stretches.items()
    }
    for measure, unit, at, block, value in (*_resource_points(measures), *_block_points(connection, run, measures)):
        whole = at_s[block.index], (block.ended_ns - block.started_ns) / 1e9
        points[measure, unit, at].append((*spans.get((measures.arms[at].name, block.index), whole), value))
    for (arm, index), own in sorted(stretches.items(), key=lambda it: it[1].began_ns):
        for measure, unit, value in _values(own):
            points[measure, unit, numbers.get(arm)].append((*spans[arm, index], value))
    for measure, unit, number, failed in _errors(measures):
        points[measure, unit, number] += [(at_s[b.index], (b.ended_ns - b.started_ns) / 1e9, v) for b, v in failed]
    told = {measure for (measure, _, _), own in points.items() if any(value for _, _, value in own)}
    return [_columns(measure, unit, number, own) for (measure, unit, number), own in points.items() if measure in told]


Point = tuple[str, str, int, Block, float]
"""A measure, its unit, the index of the arm among those judged, the block, the value."""


def _resource_points(measures: Measures) -> Iterator[Point]:
    """Yield what a transaction of each arm's sessions or programs uses, by block, if the bench measured it."""
    for at, arm in enumerate(measures.arms):
        for block in arm.blocks:
            own: dict[str, float] = next((row for row in block.report.get("arms", []) if row["arm"] == arm.number), {})
            count = own.get("transactions", 0)
            if not count or "user_ns" not in own:
                continue
            cpu_ns = own.get(ON_CPU, own["user_ns"] + own["system_ns"])
            yield "CPU of a transaction", "ns", at, block, cpu_ns / count
            for measure, name in _USED:
                if name in own:
                    yield measure, "bytes", at, block, own[name] / count


def _block_points(connection: Any, run: Run, measures: Measures) -> Iterator[Point]:
    """Yield how many database blocks a transaction of each arm touched, by block of the run."""
    counted = counted_by_block(connection, run, measures)
    for at, arm in enumerate(measures.arms):
        for block in arm.blocks:
            own: dict[str, float] = next((row for row in block.report.get("arms", []) if row["arm"] == arm.number), {})
            found, count = counted.get((arm.name, block.index)), own.get("transactions", 0)
            if not found or not count:
                continue
            for measure, name in _TOUCHED:
                yield measure, "count", at, block, sum(found[metric] for metric in BLOCKS[name]) / count


@dataclass
class _Stretch:
    """A turn of an arm, or a block: its start and end, and the growth of each counter between them."""

    began_ns: int
    ended_ns: int
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.began_ns) / 1e9


def _stretches(connection: Any, blocks: list[int]) -> dict[tuple[str, int], _Stretch]:
    """Return the growth of the counters in each turn, by (arm, block); the arm is "" for a whole block."""
    if not has_table(connection, "metrics"):
        return {}
    found: dict[tuple[str, int], _Stretch] = {}
    own_names = [name for _, _, names in _RATES for name in names]
    given = {"blocks": blocks, "partitions": _PARTITIONS, "own": own_names}
    rows = connection.execute(_READINGS, given).fetchall()
    for arm, block, source, metric, _, first, last, began, ended in rows:
        own = found.setdefault((arm or "", block), _Stretch(began, ended))
        own.began_ns, own.ended_ns = min(own.began_ns, began), max(own.ended_ns, ended)
        if last >= first:  # a counter that fell was reset in between
            own.sums[metric if source != "/proc/stat" else f"host {metric}"] += last - first
    return {key: own for key, own in found.items() if own.seconds > 0}


def _values(stretch: _Stretch) -> list[tuple[str, str, float]]:
    sums = stretch.sums
    cpu = {name.removeprefix("host "): value for name, value in sums.items() if name.startswith("host cpu_")}
    values = []
    if total := sum(cpu.values()):
        values += [
            ("CPU busy", "share", 1 - sum(cpu.get(name, 0.0) for name in _CPU_IDLE) / total),
            ("CPU waiting for I/O", "share", cpu.get("cpu_iowait", 0.0) / total),
        ]
    for measure, unit, names in _RATES:
        given = [sums[name] for name in names if name in sums]
        if given:
            # Redo has two counters for the same amount, of which a version has one or both.
            amount = given[0] if measure == "redo" else sum(given)
            values.append((measure, unit, amount / stretch.seconds))
    return values


def _errors(measures: Measures) -> list[tuple[str, str, int, list[tuple[Any, float]]]]:
    """Return failed transactions as a share of those started, by block and arm, if any failed."""
    found = []
    failed_at_all = any(float(value) > 0 for arm in measures.arms for value in arm.values["failed"])
    for at, arm in enumerate(measures.arms if failed_at_all else []):
        shares = []
        for block, failed, done in zip(arm.blocks, arm.values["failed"], arm.values["count"], strict=False):
            begun = float(failed) + float(done)
            if begun > 0:
                shares.append((block, float(failed) / begun))
        found.append(("failed transactions", "share", at, shares))
    return found


def _columns(measure: str, unit: str, arm: int | None, points: list[tuple[float, float, float]]) -> TimeSeries:
    begin, seconds, values = zip(*sorted(points), strict=True)
    told: TimeSeries = {"measure": measure, "unit": unit, "arm": arm, "at_s": [], "seconds": [], "value": []}
    return {**told, "at_s": list(begin), "seconds": list(seconds), "value": list(values)}
