"""Report sections on the cluster: I/O, WAL and checkpoints, SLRU caches, objects created and dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import MissingMeasurement, Part, Row, columns, missing_measurement, section, table
from dbdyno.snapshot.engines.postgres.section_helpers import has_several_databases, missing_timing, setting
from dbdyno.snapshot.engines.shared_sections import needs

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_IO = columns(
    "who:text what:text context:text reads read_bytes:bytes read_time:ns writes write_bytes:bytes"
    " write_time:ns extends extend_bytes:bytes extend_time:ns hits hitrate:ratio evictions reuses writebacks"
    " writeback_bytes:bytes writeback_time:ns fsyncs fsync_time:ns"
)


@needs(
    "pg_stat_io", name="io", title="I/O by who and what", what="I/O by who and what", otherwise="PostgreSQL 16 or later"
)
def io(interval: Interval, top: int) -> Part:
    """Return the section on I/O by backend type, object and context."""
    view = "pg_stat_io"
    has = interval.columns(view)
    timed = setting(interval, "track_io_timing") == "on"
    wal_timed = setting(interval, "track_wal_io_timing") == "on"

    block = "op_bytes" if "op_bytes" in has else int(interval.after.facts.get("block_bytes") or 8192)

    def size(word: str) -> str:
        name = f"{word}_bytes"
        return name if name in has else f"{word}s * op_bytes"

    def time(word: str) -> str:
        known = f"case when object = 'wal' then {wal_timed} else {timed} end"
        return f"case when {known} then {word}_time * 1e6 end"

    rows = interval.query(
        f"""select backend_type as who, object as what, context, reads,
          {size("read")} as read_bytes, {time("read")} as read_time, writes,
          {size("write")} as write_bytes, {time("write")} as write_time, extends,
          {size("extend")} as extend_bytes, {time("extend")} as extend_time, hits, reuses, writebacks,
          writebacks * {block} as writeback_bytes, {time("writeback")} as writeback_time, {time("fsync")} as fsync_time,
          hits / nullif(hits + reads, 0) as hitrate,
          evictions, fsyncs, verdict, why
        from {view} where verdict <> 'ok' or coalesce(reads, 0) + coalesce(writes, 0)
          + coalesce(extends, 0) + coalesce(hits, 0) + coalesce(fsyncs, 0) > 0
        order by coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) desc,
          hits desc nulls last""",
        view,
    )
    return section(
        "io",
        "I/O by who and what",
        [table("", _IO, rows, top=max(top, 20))],
        about="one operation can cover several blocks; hits: blocks found in shared buffers",
        not_measured=[missing_timing(interval, "time of reads and writes")],
    )


_VALUES = columns("what:text total:number per_second:number:per_second unit:text:")


def log(interval: Interval, top: int) -> Part:
    """Return the section on WAL, checkpoints, the background writer and the archiver."""
    lacks: list[MissingMeasurement | None] = []
    tables = []
    for title, view, lines in (
        ("WAL", "pg_stat_wal", _WAL),
        ("Checkpoints", "pg_stat_checkpointer", _CHECKPOINTER),
        ("Background writer", "pg_stat_bgwriter", _BGWRITER),
        ("Archiver", "pg_stat_archiver", _ARCHIVER),
    ):
        if not interval.has(view):
            if view == "pg_stat_wal":
                why = interval.missing_reason(view) or ("", None)
                lacks.append(missing_measurement("WAL counters", why[0], why[1] or "PostgreSQL 14 or later"))
            continue
        rows = _values(interval, view, lines)
        tables.append(table(title, _VALUES, rows))
    has = interval.columns("pg_stat_wal")
    if "wal_sync_time" in has and setting(interval, "track_wal_io_timing") != "on":
        lacks.append(
            missing_measurement(
                "time of WAL writes and syncs", "track_wal_io_timing is off", "track_wal_io_timing = on"
            )
        )
    return section("wal", "WAL and checkpoints", tables, not_measured=lacks, notes=_positions(interval))


def _positions(interval: Interval) -> list[str]:
    """Return a note with the WAL position at both ends of the interval, in the server's notation."""
    ends = [end.facts.get("wal_bytes") for end in (interval.before, interval.after)]
    if None in ends:
        return []
    old, new = (f"{int(at or 0) >> 32:X}/{int(at or 0) & 0xFFFFFFFF:X}" for at in ends)
    return [f"WAL position {old} → {new}"]


Lines = dict[str, tuple[str, str, float]]
"""For each counter: its label, its unit, and the factor for conversion to that unit."""


def _lines(spec: str) -> Lines:
    """Return the lines that words `counter:label` or `counter:label:unit` specify (`_` in a label is a blank)."""
    found: Lines = {}
    for word in spec.split():
        name, label, unit = [*word.split(":"), "count"][:3]
        found[name] = (label.replace("_", " "), *(("ns", 1e6) if unit == "ms" else (unit, 1)))
    return found


_WAL = _lines(
    "wal_records:records wal_fpi:full_page_images wal_bytes:bytes:bytes wal_buffers_full:buffers_full"
    " wal_write:writes wal_sync:syncs wal_write_time:time_of_writes:ms wal_sync_time:time_of_syncs:ms"
)
_CHECKPOINTER = _lines(
    "num_timed:timed num_requested:requested num_done:done restartpoints_timed:restartpoints_timed"
    " restartpoints_req:restartpoints_requested restartpoints_done:restartpoints_done"
    " write_time:time_of_writes:ms sync_time:time_of_syncs:ms buffers_written:buffers_written"
    " slru_written:SLRU_buffers_written"
)
_BGWRITER = _lines(
    "checkpoints_timed:checkpoints_timed checkpoints_req:checkpoints_requested"
    " checkpoint_write_time:checkpoint_writes_took:ms checkpoint_sync_time:checkpoint_syncs_took:ms"
    " buffers_checkpoint:buffers_written_by_checkpoints buffers_clean:buffers_written_by_the_background_writer"
    " maxwritten_clean:rounds_ended_at_the_limit buffers_backend:buffers_written_by_sessions"
    " buffers_backend_fsync:syncs_by_sessions buffers_alloc:buffers_allocated"
)
_ARCHIVER = _lines("archived_count:archived failed_count:failed")
_TIMED_BY = {"wal_write_time": "track_wal_io_timing", "wal_sync_time": "track_wal_io_timing"}


def _values(interval: Interval, view: str, lines: dict[str, tuple[str, str, float]]) -> list[Row]:
    """Return one table row per counter of a single-row view."""
    found = interval.query(f"select * from {view}", view)
    row = found[0] if found else {}
    rows = []
    for name, (label, unit, factor) in lines.items():
        if name not in row:
            continue
        gate = _TIMED_BY.get(name)
        value = row[name]
        if gate is not None and setting(interval, gate) != "on":
            continue
        total = None if value is None else value * factor
        rows.append(
            {
                "what": label,
                "total": total,
                "per_second": None if total is None else total / interval.seconds,
                "unit": unit,
                "verdict": row["verdict"],
                "why": row["why"],
            }
        )
    return rows


_SLRU = columns("name:text hits reads hitrate:ratio written zeroed checked flushes truncates")


@needs("pg_stat_slru", name="slru", title="SLRU caches", what="SLRU caches", otherwise="PostgreSQL 13 or later")
def slru(interval: Interval, top: int) -> Part:
    """Return the section on the caches of transaction status, subtransactions, multixacts and so on."""
    view = "pg_stat_slru"
    rows = interval.query(
        """select name, blks_hit as hits, blks_read as reads,
          blks_hit / nullif(blks_hit + blks_read, 0) as hitrate, blks_written as written,
          blks_zeroed as zeroed, blks_exists as checked, flushes, truncates, verdict, why
        from pg_stat_slru
        where verdict <> 'ok' or blks_hit + blks_read + blks_written + blks_zeroed > 0
        order by hits + reads desc nulls last""",
        view,
    )
    notes = [] if rows else ["no SLRU cache was used"]
    return section("slru", "SLRU caches", [table("", _SLRU, rows)], notes=notes)


def changes(interval: Interval, top: int) -> Part:
    """Return the section on objects created, dropped and renamed during the interval."""
    rows: list[Row] = []
    several = has_several_databases(interval)
    for kind, view, name in (
        ("database", "pg_stat_database", "datname"),
        ("table", "pg_stat_user_tables", "schemaname || '.' || relname"),
        ("index", "pg_stat_user_indexes", "schemaname || '.' || indexrelname"),
    ):
        if not interval.has(view):
            continue
        rows += interval.query(
            f"""select '{kind}' as kind, datname as database, {name} as name, case life when 'new' then 'created'
              else 'dropped' end as change, verdict, why
            from {view} where life in ('new', 'gone')
              and verdict not in ('crash', 'failover') order by name""",
            view,
        )
        rows += _renamed(interval, kind, view, name)
    shown = columns(f"kind:text {'database:text ' if several else ''}name:text change:text verdict:text")
    return section(
        "changes",
        "Objects created, dropped, renamed",
        [table("", shown, rows, top=max(top, 20))],
        notes=[] if rows else ["none"],
    )


def _renamed(interval: Interval, kind: str, view: str, name: str) -> list[Row]:
    before, after = interval.ends(view)
    keys = [c.name for c in interval.after.columns(view) if c.kind == "key"]
    old = name.replace("schemaname", "a.schemaname").replace("indexrelname", "a.indexrelname")
    old = old.replace("|| relname", "|| a.relname").replace("datname", "a.datname")
    new = old.replace("a.", "b.")
    return interval.query(
        f"""select '{kind}' as kind, b.datname as database, {new} as name, 'renamed from ' || {old} as change,
          'ok' as verdict
        from {before} a join {after} b on {" and ".join(f"a.{k} = b.{k}" for k in keys)}
        where {old} <> {new} order by 2"""
    )
