"""Evidence of an interval of snapshots of PostgreSQL: counters are differences between its two ends.

Snapshots have no definitions of indexes and keys, and no sampled sessions: rules that need them are not judged. A row
whose difference is not known (a reset, a crash) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dbdyno.advise import kinds
from dbdyno.advise.engines.mariadb import snapshots as mariadb
from dbdyno.advise.engines.postgres.read import evidence_row
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.placement import Segment
from dbdyno.base.errors import AdviceError, EvidenceError
from dbdyno.base.json_types import TableRow
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.engines.postgres.section_helpers import (
    column_or_null,
    has_several_databases,
    relation_name,
    setting,
)
from dbdyno.snapshot.plans.estimates import PlanEstimates, interval_estimates
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.store.folder import Store

PLANS = "plans of the server's log"
_LIVE_ONLY = (
    kinds.Index,
    kinds.ForeignKey,
    kinds.Key,
    kinds.Width,
    kinds.Session,
    kinds.PreparedTransaction,
    kinds.Load,
)
_ASK = MissingEvidence("snapshots do not contain this", "run `dbdyno advise postgresql://...` on the server itself")


def read(store: Store, text: str, target: str | None = None) -> Facts:
    """Return the evidence of an interval such as `snap:1..12`.

    Raises:
        SnapshotError: the interval cannot be read.
        AdviceError: there are no rules for its engine.
    """
    chain = period(store, text, target).chain
    with Interval(store, chain[0], chain[-1]) as interval:
        engine = interval.after.manifest.get("engine", "postgres")
        if engine not in _ENGINES:
            raise AdviceError(
                f"advice on snapshots supports {' and '.join(map(str, _ENGINES))}, not {engine}",
                where=text,
                next_step="see what these snapshots contain with `dbdyno snap report`",
            )
        return _ENGINES[engine](interval)


def facts_of(interval: Interval) -> Facts:
    """Return the evidence of an interval."""
    rows: dict[type, Sequence[Any]] = {kinds.Server: [_server(interval)]}
    lacking: dict[type, MissingEvidence] = {
        kind: MissingEvidence(f"{kinds.PLACES[kind]}: {_ASK.why}", _ASK.next) for kind in _LIVE_ONLY
    }
    for kind, views, reader in _READERS:
        missing = [interval.missing_reason(view) for view in views if not interval.has(view)]
        if missing:
            why, step = missing[0] or ("not in the snapshots", None)
            lacking[kind] = MissingEvidence(f"{views[0]}: {why}", step or "")
            continue
        try:
            rows[kind] = [evidence_row(kind, row) for row in reader(interval)]
        except EvidenceError as error:  # of an earlier version, without a column
            lacking[kind] = MissingEvidence(f"{kinds.PLACES[kind]}: {error.message}", error.next_step or "")
    if not rows.get(kinds.Checkpoints, [1]):
        lacking[kinds.Checkpoints] = MissingEvidence(f"{kinds.PLACES[kinds.Checkpoints]}: the difference is not known")
        del rows[kinds.Checkpoints]
    if not rows.get(kinds.Wal, [1]):
        lacking[kinds.Wal] = MissingEvidence(f"{kinds.PLACES[kinds.Wal]}: the difference is not known")
        del rows[kinds.Wal]
    estimates = _estimates(interval)
    if isinstance(estimates, MissingEvidence):
        lacking[kinds.Estimate] = estimates
    else:
        rows[kinds.Estimate] = estimates
    numbers = f"snapshots {interval.before.number} to {interval.after.number}"
    return Facts(
        f"{interval.after.target}, {numbers}",
        "snapshots",
        rows,
        lacking,
        f"{interval.seconds:,.0f} s between {numbers}",
    )


def _server(interval: Interval) -> kinds.Server:
    facts = interval.after.facts
    return kinds.Server(
        "postgres",
        str(facts.get("version") or ""),
        int(facts.get("version_num") or 0),
        bool(facts.get("in_recovery")),
        at_us=facts.get("at_us"),
        started_us=facts.get("started_us"),
        sees_all=facts.get("monitor") is not False,
        role=str(facts.get("role") or ""),
        identity=str(facts.get("identity") or ""),
    )


def _settings(interval: Interval) -> list[dict[str, object]]:
    unit = "unit" if "unit" in interval.columns("pg_settings") else "''"
    return interval.query(
        f"select name, setting as value, coalesce({unit}, '') as unit, source from {interval.ends('pg_settings')[1]}"
    )


def _databases(interval: Interval) -> list[TableRow]:
    has = interval.columns("pg_stat_database")
    timed = setting(interval, "track_io_timing") == "on"
    return interval.query(
        f"""select datname as name, blks_read as reads, blks_hit as hits,
          {"blk_read_time" if timed else "null::double"} as read_ms, temp_files, temp_bytes, xact_commit as commits,
          {column_or_null("sessions", has)} as sessions,
          {column_or_null("active_time", has)} as active_ms, null as frozen_age,
          null as multixact_age, {interval.seconds!r} as span_s,
          datname = '{str(interval.after.facts.get("database") or "").replace("'", "''")}' as is_current
        from pg_stat_database where verdict = 'ok' and datname is not null order by 1""",
        "pg_stat_database",
    )


def _tables(interval: Interval) -> list[dict[str, object]]:
    on = "on c.datid = t.datid and c.oid = t.relid"
    pages = f"left join {interval.ends('pg_class')[1]} c {on}" if interval.has("pg_class") else ""
    now = interval.ends("pg_stat_user_tables")[1]
    size, age, told = ("c.relpages", "c.frozen_age", "c.reltuples") if pages else ("null", "null", "null")
    return interval.query(
        f"""select {relation_name("t", has_several_databases(interval))} as name, t.n_live_tup as rows,
          t.n_dead_tup as dead, {size} as pages, t.n_tup_ins as inserted, t.n_tup_upd as updated,
          t.n_tup_del as deleted, t.seq_scan as seq_scans, t.seq_tup_read as seq_rows, t.idx_scan as idx_scans,
          t.n_mod_since_analyze as modified, {age} as frozen_age, i.heap_blks_read as heap_reads,
          i.idx_blks_read as idx_reads, {told} as estimated_rows,
          greatest(n.last_vacuum, n.last_autovacuum) as vacuumed_us,
          greatest(n.last_analyze, n.last_autoanalyze) as analyzed_us
        from pg_stat_user_tables t join pg_statio_user_tables i on i.datid = t.datid and i.relid = t.relid
          join {now} n on n.datid = t.datid and n.relid = t.relid {pages} where t.verdict = 'ok' order by 1""",
        "pg_stat_user_tables",
        "pg_statio_user_tables",
    )


def _segments(interval: Interval) -> list[dict[str, object]]:
    """Return heaps and indexes of the database that was read, with names usable in statements."""
    block = int(setting(interval, "block_size") or 8192)
    pages = interval.ends("pg_class")[1]
    quoted = """'"' || replace(i.schemaname, '"', '""') || '"."' || replace(i.{}, '"', '""') || '"'"""
    parts = (
        ("table", "pg_statio_user_tables", "relname", "relid", "heap_blks_read"),
        ("index", "pg_statio_user_indexes", "indexrelname", "indexrelid", "idx_blks_read"),
    )
    query = " union all ".join(
        f"select {quoted.format(name)} as name, '{kind}' as kind, c.relpages::bigint * {block} as bytes,"
        f" coalesce(i.{reads}, 0)::bigint as reads, i.datname as database"
        f" from {view} i join {pages} c on c.datid = i.datid and c.oid = i.{oid}"
        " where i.verdict = 'ok'"
        for kind, view, name, oid, reads in parts
    )
    return interval.query(f"select * from ({query}) order by database, name", *(view for _, view, *_ in parts))


def _columns(interval: Interval) -> list[dict[str, object]]:
    """Return the columns that no index begins with, with the planner's statistics at the end of the interval."""
    columns, indexes = interval.ends("pg_attribute")[1], interval.ends("pg_index")[1]
    if "first_column" not in interval.columns("pg_index"):
        return []
    return interval.query(
        f"""select {relation_name("t", has_several_databases(interval))} as "table", s.attname as name,
          s.distinct_values as "values", s.commonest
        from {interval.ends("pg_stats")[1]} s
          join {interval.ends("pg_stat_user_tables")[1]} t on t.datid = s.datid and t.relid = s.relid
          join {columns} a on a.datid = s.datid and a.attrelid = s.relid and a.attname = s.attname
        where not exists (select 1 from {indexes} x where x.datid = s.datid and x.relid = s.relid
          and x.first_column = a.attnum and x.indisvalid) order by 1, 2"""
    )


def _statements(interval: Interval) -> list[TableRow]:
    has = interval.columns("pg_stat_statements")
    timed = setting(interval, "track_io_timing") == "on" and "temp_blk_write_time" in has
    jit = [f"jit_{name}_time" for name in ("generation", "inlining", "optimization", "emission")]
    rows = interval.query(
        f"""select queryid::varchar as identifier, sum(calls) as calls, sum(total_exec_time) as ms, sum(rows) as rows,
          sum(shared_blks_hit) as hits, sum(shared_blks_read) as reads, sum(temp_blks_written) as temp_written,
          {"sum(temp_blk_read_time + temp_blk_write_time)" if timed else "null"} as temp_ms,
          {"sum(" + " + ".join(jit) + ")" if jit[0] in has else "null"} as jit_ms,
          {"sum(jit_functions)" if "jit_functions" in has else "null"} as jit_functions,
          {"sum(wal_bytes)" if "wal_bytes" in has else "null"} as wal_bytes
        from pg_stat_statements where verdict in ('ok', 'evicted') and calls > 0
          {"and toplevel is not false" if "toplevel" in has else ""} group by 1 order by 3 desc""",
        "pg_stat_statements",
    )
    texts: dict[str, str] = {}
    if interval.after.file("statement_texts") is not None:
        for one in interval.query(f"select queryid::varchar as id, query from {interval.ends('statement_texts')[1]}"):
            texts[one["id"]] = one["query"] or ""
    found = [row | {"text": texts.get(row["identifier"], "")} for row in rows]
    return [row for row in found if not is_ours(row["text"])]


def _checkpoints(interval: Interval) -> list[TableRow]:
    view = "pg_stat_checkpointer" if interval.has("pg_stat_checkpointer") else "pg_stat_bgwriter"
    names = ("num_timed", "num_requested", "write_time", "sync_time")
    if view == "pg_stat_bgwriter":
        names = ("checkpoints_timed", "checkpoints_req", "checkpoint_write_time", "checkpoint_sync_time")
    timed, requested, write, sync = names
    return interval.query(
        f"select {timed} as timed, {requested} as requested, {interval.seconds!r} as span_s, {write} as write_ms,"
        f" {sync} as sync_ms from {view} where verdict = 'ok'",
        view,
    )


def _wal(interval: Interval) -> list[dict[str, object]]:
    has = interval.columns("pg_stat_wal")
    return interval.query(
        f"select wal_bytes as bytes, wal_records as records, wal_fpi as full_pages,"
        f" {column_or_null('wal_buffers_full', has)} as buffers_full, {interval.seconds!r} as span_s"
        " from pg_stat_wal where verdict = 'ok'",
        "pg_stat_wal",
    )


def _io(interval: Interval) -> list[dict[str, object]]:
    has = interval.columns("pg_stat_io")
    read_bytes = "read_bytes" if "read_bytes" in has else "reads * op_bytes"
    timed = setting(interval, "track_io_timing") == "on"
    return interval.query(
        f"select backend_type as backend, object, context, coalesce(reads, 0) as reads,"
        f" {'read_time' if timed else 'null::double'} as read_ms, coalesce({read_bytes}, 0) as read_bytes,"
        " coalesce(evictions, 0) as evictions from pg_stat_io where verdict = 'ok'"
        " and object in ('relation', 'temp relation')",
        "pg_stat_io",
    )


def _slots(interval: Interval) -> list[TableRow]:
    has = interval.columns("pg_replication_slots")
    at = int(interval.after.facts.get("wal_bytes") or 0)
    status = "coalesce(wal_status, '')" if "wal_status" in has else "''"
    held = f"{at} - restart_lsn" if at else "null"
    return interval.query(
        f"select slot_name as name, slot_type as kind, active as is_active, {status} as status, {held} as held_bytes,"
        f" null as xmin_age, null as catalog_xmin_age from {interval.ends('pg_replication_slots')[1]}"
    )


def _slru(interval: Interval) -> list[dict[str, object]]:
    return interval.query("select name, blks_read as reads from pg_stat_slru where verdict = 'ok'", "pg_stat_slru")


def _estimates(interval: Interval) -> list[kinds.Estimate] | MissingEvidence:
    found = interval_estimates(interval)
    if found is None:
        return MissingEvidence(
            f"{PLANS}: the store has no log for this time",
            "run `dbdyno snap plans --log FILE`, then ask for advice again",
        )
    if not found:
        return MissingEvidence(
            f"{PLANS}: no logged plan has the actual numbers of rows", "set auto_explain.log_analyze = on"
        )
    return [_estimate(one, place) for one, place in found]


def _estimate(plan_estimates: PlanEstimates, place: str) -> kinds.Estimate:
    known = kinds.Estimate(
        plan_estimates.statement,
        plan_estimates.text,
        plan_estimates.plan,
        plan_estimates.measured,
        plan_estimates.spent_us / 1000,
    )
    if plan_estimates.node is None:
        return known
    return replace(
        known,
        executions=plan_estimates.executions,
        node=plan_estimates.node.title,
        kind=plan_estimates.node.kind,
        table=plan_estimates.node.relation_name,
        conditions=tuple(words for _, words in plan_estimates.node.conditions),
        planned=plan_estimates.planned,
        found=plan_estimates.found,
        loops=plan_estimates.loops,
        place=place,
    )


_READERS: tuple[tuple[type, tuple[str, ...], Callable[[Interval], list[dict[str, object]]]], ...] = (
    (kinds.Setting, ("pg_settings",), _settings),
    (kinds.Database, ("pg_stat_database",), _databases),
    (kinds.Table, ("pg_stat_user_tables", "pg_statio_user_tables"), _tables),
    (Segment, ("pg_statio_user_tables", "pg_statio_user_indexes", "pg_class"), _segments),
    (kinds.Column, ("pg_stats", "pg_attribute", "pg_index", "pg_stat_user_tables"), _columns),
    (kinds.Statement, ("pg_stat_statements",), _statements),
    (kinds.Checkpoints, ("pg_stat_bgwriter",), _checkpoints),
    (kinds.Wal, ("pg_stat_wal",), _wal),
    (kinds.Io, ("pg_stat_io",), _io),
    (kinds.Slot, ("pg_replication_slots",), _slots),
    (kinds.Slru, ("pg_stat_slru",), _slru),
)
_ENGINES: dict[str, Callable[[Interval], Facts]] = {"postgres": facts_of, "mariadb": mariadb.facts_of}
"""Engines for which there are rules, with the function that reads their intervals."""
