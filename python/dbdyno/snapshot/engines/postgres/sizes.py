"""Report section on sizes and growth of databases, tablespaces, tables and indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.snapshot.engines.postgres.section_helpers import has_several_databases, relation_name

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_DATABASES = columns("database:text size:bytes growth:bytes")
_TABLESPACES = columns("tablespace:text location:text size:bytes growth:bytes")
_TABLES = columns("table:text size:bytes growth:bytes toast:bytes toast_growth:bytes inserted updated deleted")
_INDEXES = columns("index:text table:text size:bytes growth:bytes")


def sizes(interval: Interval, top: int) -> Part:
    """Return the section on the sizes at the end of the interval, and their growth."""
    lacks = []
    found: dict[str, list[Row]] = {}
    for view, name, what in (("pg_database", "datname", "database"), ("pg_tablespace", "spcname", "tablespace")):
        missing = interval.missing_reason(view)
        if missing:
            lacks.append(missing_measurement(f"sizes of {what}s", *_why(interval, view, missing)))
            continue
        more = ", nullif(location, '') as location" if view == "pg_tablespace" else ""
        found[view] = interval.query(
            f"""select {name} as {what}, size_bytes as size, size_bytes - size_bytes_before as growth {more},
              verdict, why
            from {view} where life <> 'gone' order by size desc nulls last, 1""",
            view,
        )
        hidden = sum(row["size"] is None for row in found[view])
        if hidden:
            step = f"grant pg_monitor to {interval.after.facts.get('role')}"
            lacks.append(missing_measurement(f"sizes of {hidden} {what}s", "the role may not see them", step))
    tables, indexes = _relations(interval)
    if not interval.has("pg_class"):
        lacks.append(
            missing_measurement("sizes of tables and indexes", *(interval.missing_reason("pg_class") or ("", None)))
        )
    grown = (sum(row["growth"] != 0 for row in rows) for rows in (tables, indexes))
    return section(
        "sizes",
        "Sizes and growth",
        [
            table("Databases", _DATABASES, found.get("pg_database", [])),
            table("Tablespaces", _TABLESPACES, found.get("pg_tablespace", [])),
            table("Tables by growth", _TABLES, tables, top=top),
            table("Indexes by growth", _INDEXES, indexes, top=top),
        ],
        about="databases and tablespaces: their files. Tables and indexes: relpages, which vacuum, analyze and index"
        " builds bring up to date; growth: between the two snapshots. A table's size excludes its indexes and TOAST.",
        not_measured=lacks,
        notes=_notes(interval, *grown),
    )


def _why(interval: Interval, view: str, missing: tuple[str, str | None]) -> tuple[str, str | None]:
    """Return why a view is missing and the next step; snapshots of older versions do not have the view at all."""
    for end in (interval.before, interval.after):
        if view not in end.views:
            return f"snapshot {end.number} was taken without them", "take new snapshots"
    return missing


def _notes(interval: Interval, tables: int, indexes: int) -> list[str]:
    notes = []
    if interval.has("pg_class") and not tables and not indexes:
        notes.append("relpages changed for no table or index")
    record = interval.after.views.get("pg_database")
    if record is not None and not record["elapsed_ns"] and not record.get("problem"):
        notes.append("sizes of databases and tablespaces are from an earlier snapshot of the same watch")
    return notes


def _relations(interval: Interval) -> tuple[list[Row], list[Row]]:
    """Return tables and indexes, sorted by growth, the largest first."""
    views = ("pg_class", "pg_stat_user_tables", "pg_stat_user_indexes")
    if not all(interval.has(view) for view in views):
        return [], []
    block = int(interval.after.facts.get("block_bytes") or 8192)
    several = has_several_databases(interval)
    grown = f"(c.relpages - coalesce(c.relpages_before, 0)) * {block}"
    tables = interval.query(
        f"""select {relation_name("t", several)} as "table", c.relpages * {block} as size, {grown} as growth,
          o.relpages * {block} as toast, (o.relpages - coalesce(o.relpages_before, 0)) * {block} as toast_growth,
          n_tup_ins as inserted, n_tup_upd as updated, n_tup_del as deleted, t.verdict, t.why
        from pg_class c join pg_stat_user_tables t on t.datid = c.datid and t.relid = c.oid
          left join pg_class o on o.datid = c.datid and o.oid = c.reltoastrelid
        where t.life <> 'gone' and c.relpages + coalesce(o.relpages, 0) > 0
        order by growth + coalesce(toast_growth, 0) desc, size desc, 1""",
        *views,
    )
    indexes = interval.query(
        f"""select x.indexrelname as index, {relation_name("x", several)} as "table",
          c.relpages * {block} as size, {grown} as growth, x.verdict, x.why
        from pg_class c join pg_stat_user_indexes x on x.datid = c.datid and x.indexrelid = c.oid
        where x.life <> 'gone' and c.relpages > 0 order by growth desc, size desc, 1""",
        *views,
    )
    return tables, indexes
