"""Report sections on tables, indexes and vacuum: what was read, written and cleaned up, and what was not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Heading, Part, Row, columns, missing_measurement, section, table
from dbdyno.snapshot.engines.postgres.section_helpers import (
    column_or_null,
    has_several_databases,
    relation_name,
)
from dbdyno.snapshot.engines.shared_sections import needs, unknown_rows_table

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_MOST = columns("table:text tuples_pct:ratio tab_hitpct:ratio idx_hitpct:ratio tab_read tab_hit idx_read idx_hit")
_READ = columns(
    "table:text tab_read idx_read share_read:ratio:share tab_hitpct:ratio idx_hitpct:ratio seq_scans idx_scans"
)
_FETCHED = columns(
    "table:text asked:count:blocks share_asked:ratio:share tab_asked idx_asked toast_asked toast_idx_asked toast_read"
    " toast_idx_read"
)
_SCANNED = columns("table:text scanned:bytes:scanned_about seq_scans seq_rows size:bytes")
_CHANGED = columns("table:text changed inserted updated hot:ratio:hot_updates new_page:count:to_another_page deleted")
_ACCESS = columns(
    "table:text seq_scans seq_rows idx_scans idx_rows inserted updated hot:ratio:hot_updates"
    " deleted live dead size:bytes"
)


@needs("pg_stat_user_tables", "pg_statio_user_tables", name="tables", title="Most accessed tables")
def tables(interval: Interval, top: int) -> Part:
    """Return the section MOST ACCESSED TABLES by pct of tuples, named as in dbdyno's predecessor."""
    views = ("pg_stat_user_tables", "pg_statio_user_tables")
    size = "null::bigint"
    source = "null::bigint as oid, null::bigint as datid, null::bigint as relpages"
    pages = f"(select {source} where false)"
    if interval.has("pg_class"):
        pages, size = interval.table("pg_class"), f"c.relpages * {_block(interval)}"
    touched = (
        "coalesce(t.seq_tup_read, 0) + coalesce(t.idx_tup_fetch, 0) + coalesce(t.n_tup_ins, 0)"
        " + coalesce(t.n_tup_upd, 0) + coalesce(t.n_tup_del, 0)"
    )
    has = interval.columns(views[0])
    rows = interval.query(
        f"""with t as (
          select {relation_name("t", has_several_databases(interval))} as "table",
            case when t.verdict = 'ok' then {touched} end as tuples,
            heap_blks_read as tab_read, heap_blks_hit as tab_hit,
            idx_blks_read as idx_read, idx_blks_hit as idx_hit, heap_blks_read + heap_blks_hit as tab_asked,
            idx_blks_read + idx_blks_hit as idx_asked, toast_blks_read as toast_read, tidx_blks_read as toast_idx_read,
            toast_blks_read + toast_blks_hit as toast_asked, tidx_blks_read + tidx_blks_hit as toast_idx_asked,
            seq_scan as seq_scans, seq_tup_read as seq_rows, idx_scan as idx_scans,
            idx_tup_fetch as idx_rows, n_tup_ins as inserted, n_tup_upd as updated,
            n_tup_hot_upd / nullif(n_tup_upd, 0) as hot, n_tup_del as deleted,
            n_tup_ins + n_tup_upd + n_tup_del as changed,
            {column_or_null("n_tup_newpage_upd", has, at="t.")} as new_page,
            {size} * seq_scan as scanned, n_live_tup as live, n_dead_tup as dead, {size} as size, t.verdict, t.why
          from pg_stat_user_tables t
            join pg_statio_user_tables i on i.datid = t.datid and i.relid = t.relid
            left join {pages} c on c.datid = t.datid and c.oid = t.relid)
        select *, tuples / nullif(sum(tuples) over (), 0) as tuples_pct,
          tab_hit / nullif(tab_hit + tab_read, 0) as tab_hitpct,
          {_added("tab_read", "idx_read", "toast_read", "toast_idx_read")} as "read",
          {_added("tab_asked", "idx_asked", "toast_asked", "toast_idx_asked")} as asked,
          asked / nullif(sum(asked) over (), 0) as share_asked,
          "read" / nullif(sum("read") over (), 0) as share_read,
          idx_hit / nullif(idx_hit + idx_read, 0) as idx_hitpct
        from t order by tuples desc nulls last, tab_read + tab_hit desc nulls last, "table" """,
        *views,
    )
    known = [row for row in rows if row["tuples"] or row["tab_read"] or row["tab_hit"]]
    idle = sum(row["verdict"] == "ok" for row in rows) - sum(r["verdict"] == "ok" for r in known)
    return section(
        "tables",
        "Most accessed tables",
        [
            table("by share of tuples", _MOST, known, top=top),
            table("Scans and changes", _ACCESS, known, top=top),
            table("By blocks read", _READ, _most(known, "read"), top=top),
            table("By blocks asked for", _FETCHED, _most(known, "asked"), top=top),
            table("By volume of sequential scans", _SCANNED, _most(known, "scanned"), top=top),
            table("By rows changed", _without(_CHANGED, has), _most(known, "changed"), top=top),
            unknown_rows_table(interval, views[0], relation_name("", has_several_databases(interval)), top),
        ],
        about="tuples: rows read by sequential scans, fetched by index, inserted, updated, deleted."
        " read and hit: blocks of the table and of its indexes; asked for: read plus hit, including TOAST."
        " size: relpages, as of the last vacuum or analyze. scanned: sequential scans times size.",
        notes=[f"{idle} tables were not accessed"] if idle else [],
    )


def _most(rows: list[Row], name: str) -> list[Row]:
    """Return the rows with a nonzero value in a column, sorted by it in descending order."""
    return sorted((row for row in rows if row[name]), key=lambda row: -row[name])


def _added(*names: str) -> str:
    """Return SQL for a sum in which unknown values (of a table without TOAST) count as 0."""
    return " + ".join(f"coalesce({name}, 0)" for name in names)


def _without(headings: list[Heading], has: set[str]) -> list[Heading]:
    """Return the columns, with updates to another page only if the server counts them (from version 16)."""
    return [one for one in headings if one["name"] != "new_page" or "n_tup_newpage_upd" in has]


def _block(interval: Interval) -> int:
    return int(interval.after.facts.get("block_bytes") or 8192)


_INDEXES = columns("index:text table:text scans rows_read rows_fetched blocks_read blocks_hit")
_INDEX_BLOCKS = columns("index:text table:text asked:count:blocks share_asked:ratio:share scans hitrate:ratio")
_INDEX_READS = columns("index:text table:text blocks_read share_read:ratio:share scans hitrate:ratio")
_UNUSED = columns("index:text table:text size:bytes scans_ever why:text")


@needs("pg_stat_user_indexes", "pg_statio_user_indexes", name="indexes", title="Indexes")
def indexes(interval: Interval, top: int) -> Part:
    """Return the section on indexes sorted by scans, and on indexes that were not scanned."""
    views = ("pg_stat_user_indexes", "pg_statio_user_indexes")
    relation = relation_name("x", has_several_databases(interval))
    used = interval.query(
        f"""select x.indexrelname as index, {relation} as "table", idx_scan as scans,
          idx_tup_read as rows_read, idx_tup_fetch as rows_fetched, idx_blks_read as blocks_read,
          idx_blks_hit as blocks_hit, idx_blks_read + idx_blks_hit as asked,
          blocks_hit / nullif(asked, 0) as hitrate, asked / nullif(sum(asked) over (), 0) as share_asked,
          blocks_read / nullif(sum(blocks_read) over (), 0) as share_read, x.verdict, x.why
        from pg_stat_user_indexes x join pg_statio_user_indexes i
          on i.datid = x.datid and i.indexrelid = x.indexrelid
        where x.verdict = 'ok' and (idx_scan > 0 or asked > 0) order by idx_scan desc, index""",
        *views,
    )
    scanned = _most(used, "scans")
    unused = _unused(interval, relation) if interval.has("pg_index") else []
    started = interval.after.facts.get("in_recovery")
    quiet = [] if scanned else ["no index was scanned"]
    return section(
        "indexes",
        "Indexes",
        [
            table("Most scanned", _INDEXES, scanned, top=top),
            table("By blocks asked for", _INDEX_BLOCKS, _most(used, "asked"), top=top),
            table("By blocks read", _INDEX_READS, _most(used, "blocks_read"), top=top),
            table("Not scanned", _UNUSED, unused, top=top),
            unknown_rows_table(interval, views[0], "indexrelname", top),
        ],
        about="not scanned: no scan in the interval, and not a primary key, unique index or constraint; scans_ever: "
        "since the statistics began",
        notes=[
            *quiet,
            *(["an index that is idle here may serve queries on a standby"] if unused and not started else []),
        ],
    )


def _unused(interval: Interval, relation: str) -> list[Row]:
    size = "null"
    join = ""
    if interval.has("pg_class"):
        size = f"c.relpages * {_block(interval)}"
        join = f"left join {interval.table('pg_class')} c on c.datid = x.datid and c.oid = x.indexrelid"
    after = interval.ends("pg_stat_user_indexes")[1]
    return interval.query(
        f"""select x.indexrelname as index, {relation} as "table", {size} as size,
          r.idx_scan as scans_ever,
          case when r.idx_scan = 0 then 'never scanned' else 'not in this interval' end as why
        from pg_stat_user_indexes x
          join {after} r on r.datid = x.datid and r.indexrelid = x.indexrelid
          join pg_index p on p.datid = x.datid and p.indexrelid = x.indexrelid {join}
        where x.verdict = 'ok' and x.idx_scan = 0 and not p.indisunique and not p.indisprimary
          and not p.indisexclusion
        order by r.idx_scan = 0 desc, size desc nulls last, index""",
        "pg_stat_user_indexes",
        "pg_index",
    )


_VACUUM = columns(
    "table:text vacuums autovacuums analyzes autoanalyzes vacuum_time:ns autovacuum_time:ns analyze_time:ns"
    " autoanalyze_time:ns dead_before dead_after last_vacuum:time"
)
_DEAD = columns("table:text dead dead_before live dead_pct:ratio:share last_autovacuum:time size:bytes")
_MODIFIED = columns("table:text modified live modified_pct:ratio:of_live last_autoanalyze:time size:bytes")
_CARE = ("vacuum", "autovacuum", "analyze", "autoanalyze")
_AGE = columns("database:text oldest_table:text age:count:age_in_transactions limit:ratio:of_limit")


@needs("pg_stat_user_tables", name="vacuum", title="Vacuum")
def vacuum(interval: Interval, top: int) -> Part:
    """Return the section on vacuum and analyze, and on how far each database is from wrap-around."""
    view = "pg_stat_user_tables"
    has = interval.columns(view)
    rows = interval.query(
        f"""select {relation_name("", has_several_databases(interval))} as "table",
          vacuum_count as vacuums, autovacuum_count as autovacuums, analyze_count as analyzes,
          autoanalyze_count as autoanalyzes,
          {", ".join(f"{column_or_null(f'total_{kind}_time', has)} * 1e6 as {kind}_time" for kind in _CARE)},
          n_dead_tup_before as dead_before, n_dead_tup as dead_after,
          greatest(last_vacuum, last_autovacuum) as last_vacuum, verdict, why
        from pg_stat_user_tables where verdict = 'ok'
          and vacuum_count + autovacuum_count + analyze_count + autoanalyze_count > 0
        order by vacuum_count + autovacuum_count desc, n_dead_tup desc, "table" """,
        view,
    )
    dead = _cared_for(
        interval,
        "n_dead_tup as dead, n_dead_tup_before as dead_before,"
        " n_dead_tup / nullif(n_dead_tup + n_live_tup, 0) as dead_pct, last_autovacuum",
        "n_dead_tup",
    )
    modified = _cared_for(
        interval,
        "n_mod_since_analyze as modified, n_mod_since_analyze / nullif(n_live_tup, 0) as modified_pct,"
        " last_autoanalyze",
        "n_mod_since_analyze",
    )
    quiet = [] if rows else ["no table was vacuumed or analyzed"]
    return section(
        "vacuum",
        "Vacuum",
        [
            table("", _VACUUM, rows, top=top),
            table("Most dead rows", _DEAD, dead, top=min(top, 5)),
            table("Most modified since their last analyze", _MODIFIED, modified, top=min(top, 5)),
            table("Wrap-around", _AGE, _ages(interval)),
        ],
        not_measured=[
            None
            if "total_vacuum_time" in has
            else missing_measurement(
                "time of vacuum and analyze",
                "this version does not sum it",
                "PostgreSQL 18 or later; or log_autovacuum_min_duration",
            ),
        ],
        notes=quiet,
    )


def _cared_for(interval: Interval, shown: str, most: str) -> list[Row]:
    """Return the tables with more than a thousand rows waiting for vacuum or analyze."""
    pages, size = "(select null::bigint as oid, null::bigint as datid where false)", "null"
    if interval.has("pg_class"):
        pages, size = interval.table("pg_class"), f"c.relpages * {_block(interval)}"
    return interval.query(
        f"""select {relation_name("t", has_several_databases(interval))} as "table", n_live_tup as live, {shown},
          {size} as size
        from pg_stat_user_tables t left join {pages} c on c.datid = t.datid and c.oid = t.relid
        where {most} > 1000 order by {most} desc""",
        "pg_stat_user_tables",
    )


def _ages(interval: Interval) -> list[Row]:
    if not interval.has("pg_class") or "frozen_age" not in interval.columns("pg_class"):
        return []
    return interval.query(
        """select c.datname as database, arg_max(coalesce(t.relname, 'TOAST of ' || p.relname,
            'system table ' || c.oid), c.frozen_age) as oldest_table, max(c.frozen_age) as age,
          max(c.frozen_age) / 2146483648 as "limit"
        from pg_class c left join pg_stat_user_tables t on t.datid = c.datid and t.relid = c.oid
          left join pg_class o on o.datid = c.datid and o.reltoastrelid = c.oid and o.oid <> c.oid
          left join pg_stat_user_tables p on p.datid = o.datid and p.relid = o.oid
        where c.frozen_age is not null group by 1 order by age desc""",
        "pg_class",
        "pg_stat_user_tables",
    )
