"""Resources that a transaction of each arm uses: CPU in user and system mode, system calls, bytes from the storage.

Benches that can measure these resources add them up per arm in the report of a block (`COSTS`): for the programs that
they started, or for the server processes that serve the load's sessions. Both the sums and the number of transactions
include the time in which an arm settles after a switch. A value that a bench does not measure is null.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.contract.parts import ResourceRow
from dbdyno.study.analysis.contract.rows import Model
from dbdyno.study.analysis.measured.measures import Measures

COSTS = ("user_ns", "system_ns", "read_calls", "write_calls", "read_bytes", "write_bytes")
"""Names, in a block's report, of the resources that an arm's transactions used."""
ON_CPU = "on_cpu_ns"
KEPT = ("kept_statements", "kept_bytes", "session_bytes", "kept_whole")
"""Names, in a block's report, of the size of a session's statement cache, if it was recorded."""
BLOCKS = {
    "blocks": ("shared_hits", "shared_reads"),
    "blocks_read": ("shared_reads",),
    "temp_blocks": ("temp_reads", "temp_writes"),
}
"""Values that are computed from the counters of statements."""
PLANNABLE = "executions"
"""Name for the executions of statements that have plans; `begin` and similar statements have none."""
_HAS_PLAN = ("select", "insert", "update", "delete", "merge", "with", "values", "table")
PLANNING = {"plans": ("plans",), "plan_ns": ("planning",), "executions": (PLANNABLE,)}
"""Values that are computed from the counters of statements if the server counts planning."""
_COUNTED = """
with spans as (
  select arm, block, object, metric, max(value) - min(value) as value
  from metrics
  where source = 'pg_stat_statements' and arm <> '' and list_contains($1::uinteger[], block)
  group by all having count(*) > 1
)
select * from spans
"""
_LOG = """
select arm, sum(value) from (
  select arm, block, object, metric, max(value) - min(value) as value
  from metrics
  where (source, lower(metric)) in (('wal', 'insert_bytes'), ('global status', 'innodb_lsn_current'))
    and arm <> '' and list_contains($1::uinteger[], block)
  group by all having count(*) > 1)
group by arm
"""
"""SQL query for the bytes of log written during each arm's turns, including log that others wrote then."""
COLD_BYTES = 1024
"""Bytes per transaction above which sessions are said to read from the storage."""
BLOATED = 1.5
"""Ratio of touched blocks above which a transaction is said to do more work than that of its base."""
PLANNED_MOST = 6
"""Largest number of arms for which sentences report planning; with more arms, it is only in analysis.json."""
ARMS_REPORTED = 4
"""Largest number of arms that each get a sentence; with more, only the arms with the least and most are reported."""


def rows_of_run(connection: Any, run: Run, measures: Measures) -> list[ResourceRow]:
    """Return the mean resources of a transaction in each arm over the blocks that count; empty if not measured."""
    rows: list[ResourceRow] = []
    for arm in measures.arms:
        reports = [own for block in arm.blocks for own in block.report["arms"] if own["arm"] == arm.number]
        seen = [own for own in reports if "user_ns" in own]
        count = sum(own["transactions"] for own in seen)
        if count:
            used = cast(
                "ResourceRow", {"arm": arm.number, **{name: _per_operation(seen, name, count) for name in COSTS}}
            )
            rows.append({**_exact(used, _per_operation(seen, ON_CPU, count)), **_cache_row(reports)})
    blocks = _blocks(connection, run, measures)
    log = _log(connection, measures)
    for row in rows:
        row.update(cast("ResourceRow", blocks.get(row["arm"], dict.fromkeys(BLOCKS))))
        row["log_bytes"] = log.get(row["arm"])
    return rows


def _cache_row(reports: list[Mapping[str, Any]]) -> ResourceRow:
    """Return the statement cache of a session of an arm at the end of the last block; empty if none was reported."""
    last: JsonObject = next((own for own in reversed(reports) if KEPT[0] in own), {})
    return cast("ResourceRow", {name: last[name] for name in KEPT if name in last})


def _log(connection: Any, measures: Measures) -> dict[int, float]:
    """Return, by arm, the bytes of log that were written during its turns per transaction."""
    from dbdyno.study.analysis.figure_data.pictures import has_table

    if not has_table(connection, "metrics"):
        return {}
    listed = [block.index for block in measures.arms[0].blocks]
    written = dict(connection.execute(_LOG, [listed]).fetchall())
    per = {}
    for arm in measures.arms:
        # The log is read before and after the time that counts, without the time to settle after a switch.
        count = arm.total("transactions")
        if count and arm.name in written:
            per[arm.number] = written[arm.name] / count
    return per


def _exact(row: ResourceRow, on_cpu: float | None) -> ResourceRow:
    """Return the row with CPU time from the scheduler, if known, split into user and system time like the ticks."""
    ticks = _cpu(row)
    if on_cpu is None or not ticks:
        return row
    return {**row, "user_ns": row["user_ns"] * on_cpu / ticks, "system_ns": row["system_ns"] * on_cpu / ticks}


def _blocks(connection: Any, run: Run, measures: Measures) -> dict[int, dict[str, float]]:
    """Return, by arm, how many blocks its statements touched per transaction, and its planning if that was counted."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for (name, _), found in counted_by_block(connection, run, measures).items():
        counted[name].update(found)
    per = {}
    for arm in measures.arms:
        reports = [own for block in arm.blocks for own in block.report["arms"] if own["arm"] == arm.number]
        count = sum(own["transactions"] for own in reports)
        if count and arm.name in counted:
            own = counted[arm.name]
            per[arm.number] = {
                name: sum(own.get(metric, 0.0) for metric in metrics) / count
                for name, metrics in {**BLOCKS, **PLANNING}.items()
            }
    if not any(row["plans"] for row in per.values()):
        return {at: {name: row[name] for name in BLOCKS} for at, row in per.items()}
    return per


def counted_by_block(connection: Any, run: Run, measures: Measures) -> dict[tuple[str, int], Counter[str]]:
    """Return, by arm and block, the sums of the server's counters of statements, without dbdyno's own readings.

    The sums are known only if arms alternate turn by turn and the run counts statements.
    """
    from dbdyno.study.analysis.figure_data.pictures import has_table
    from dbdyno.study.analysis.questions.correlation import is_own, texts_of

    if not run.manifest.plan["watch"].get("statements") or not has_table(connection, "metrics"):
        return {}
    texts = texts_of(run)
    counted: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    found = connection.execute(_COUNTED, [[block.index for block in measures.arms[0].blocks]]).fetchall()
    for arm, block, statement, metric, value in found:
        text = texts.get(statement, "")
        if not is_own(text):
            counted[arm, block][metric] += value
            if metric == "calls" and text.lstrip("( ").lower().startswith(_HAS_PLAN):
                counted[arm, block][PLANNABLE] += value
    return counted


def sentences(model: Model, measures: Measures) -> list[str]:
    """Return sentences on the CPU of each arm compared with its base, and on where the arms' data came from.

    If there are many arms, only those with the least and the most CPU are reported. The result is empty if the CPU of
    fewer than two arms is known.
    """
    rows = {row["arm"]: row for row in model["resources"] if _cpu(row)}
    pairs = [(rows[at], rows[arm.base]) for at, arm in measures.compared_arms() if at in rows and arm.base in rows]
    if not pairs:
        return []
    names = {row["arm"]: model["arms"][row["arm"]]["name"] for row in rows.values()}
    if len(pairs) <= ARMS_REPORTED:
        told = [f"CPU of a transaction with {names[a['arm']]}: {_comparison_text(a, b)}." for a, b in pairs]
    else:
        ranked = sorted(rows.values(), key=_cpu)
        least, most = (f"{_usage_text(row)} with {names[row['arm']]}" for row in (ranked[0], ranked[-1]))
        told = [f"CPU of a transaction: from {least} to {most}."]
    caches = _caches(list(rows.values()), names)
    return [
        *told,
        *_planning_sentences(list(rows.values()), names),
        *caches,
        *_bloat_sentences(pairs, names),
        # The kernel counts no reads from a modelled device as reads from the storage.
        *([] if model.get("volumes") else _read(list(rows.values()), names)),
    ]


def _planning_sentences(rows: Sequence[ResourceRow], names: dict[int, str]) -> list[str]:
    """Return sentences on planning, if the server counted it: how often statements were planned, and for how long."""
    from dbdyno.stats.wording import duration

    known = [row for row in rows if row.get("plans") is not None]
    told = [f"{duration(row['plan_ns'])} with {names[row['arm']]} (plans: {_count(row['plans'])})" for row in known]
    if not 0 < len(told) <= PLANNED_MOST:
        return []
    hits = [f"{_hits(row)} with {names[row['arm']]}" for row in known if row["executions"]]
    kept = [f"Executions that took a plan that a session had kept: {'; '.join(hits)}."] if hits else []
    return [f"Planning of a transaction: {'; '.join(told)}.", *kept]


def _caches(rows: Sequence[ResourceRow], names: dict[int, str]) -> list[str]:
    """Return a sentence on the statement cache of a session in each arm, if the server reported it."""
    known = [row for row in rows if row.get(KEPT[0]) is not None]
    if not 0 < len(known) <= PLANNED_MOST:
        return []
    return [f"Statements that a session kept: {'; '.join(_cache(row, names[row['arm']]) for row in known)}."]


def _cache(row: ResourceRow, name: str) -> str:
    from dbdyno.stats.wording import size

    more = "" if row.get("kept_whole", 1) else "at least "
    count = f"{more}{row['kept_statements']:,}" if row["kept_statements"] else f"{more}none"
    kept = row.get("kept_bytes")
    parts = [size(kept)] if kept else []
    held = f"of the session's {size(row['session_bytes'])}"
    return f"{count} with {name} ({' '.join([*parts, held])})"


def _hits(row: ResourceRow) -> str:
    """Return the share of executions that used a cached plan, as text."""
    part = max(0.0, 1 - row["plans"] / row["executions"])
    return f"{100 * part:.3g} %"


def _bloat_sentences(pairs: list[tuple[ResourceRow, ResourceRow]], names: dict[int, str]) -> list[str]:
    """Return a sentence on arms that touch many more blocks per transaction than their base: the worst per base."""
    most: dict[int, tuple[float, str]] = {}
    for row, base in pairs:
        if row["blocks"] and base["blocks"] and row["blocks"] >= BLOATED * base["blocks"]:
            times = row["blocks"] / base["blocks"]
            word = f"{names[row['arm']]} touches {_count(row['blocks'])} blocks, {times:.3g} times as many"
            most[base["arm"]] = max(most.get(base["arm"], (0.0, "")), (times, word))
    if not most:
        return []
    ranked = [word for _, word in sorted(most.values(), reverse=True)]
    return [f"Transactions that do more work than those of their base: {'; '.join(ranked)}."]


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _read(rows: Sequence[ResourceRow], names: dict[int, str]) -> list[str]:
    """Return a sentence on which arms were cold; a hot arm reads hardly anything from the storage."""
    from dbdyno.stats.wording import size

    known = [(row["arm"], read) for row in rows if (read := row["read_bytes"]) is not None]
    cold = [f"{names[arm]} ({size(read)} a transaction)" for arm, read in known if read >= COLD_BYTES]
    if not known:
        return []
    if not cold:
        return ["All data were in memory: arms read hardly anything from the storage."]
    others = "; the other arms read hardly anything" if len(cold) < len(known) else ""
    shown = ", ".join(cold[:ARMS_REPORTED]) + " ..." * (len(cold) > ARMS_REPORTED)
    return [f"Sessions read from the storage with {shown}{others}."]


def _comparison_text(row: ResourceRow, base: ResourceRow) -> str:
    from dbdyno.stats.wording import FACTOR_FROM, duration

    times = _cpu(row) / _cpu(base)
    change = f"{times:.3g} times the" if times >= FACTOR_FROM else f"{100 * (times - 1):+.1f} % against"
    return f"{_usage_text(row)}, {change} {duration(_cpu(base))}"


def _usage_text(row: ResourceRow) -> str:
    from dbdyno.stats.wording import duration

    return f"{duration(_cpu(row))} ({100 * row['system_ns'] / _cpu(row):.0f} % of it in the system)"


def _cpu(row: ResourceRow) -> float:
    return float(row["user_ns"] + row["system_ns"])


def _per_operation(reports: list[Mapping[str, Any]], name: str, count: int) -> float | None:
    known = [own[name] for own in reports if name in own]
    return sum(known) / count if known else None
