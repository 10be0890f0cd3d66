"""Report sections on settings that changed or are not the default, and on versions of extensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.bench.postgres.shown_settings import shown_value
from dbdyno.snapshot.engines.postgres.section_helpers import has_several_databases, relation_name
from dbdyno.snapshot.engines.shared_sections import needs

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_CHANGED = columns("setting:text before:text after:text unit:text source:text")
_SET = columns("setting:text value:text unit:text source:text")
_STORAGE = columns("name:text options:text:at_the_end before:text")
_EXTENSIONS = columns("extension:text version:text before:text change:text")
_OURS = "('client', 'session')"
"""Sources of settings that dbdyno's own session sets differently from the server."""
_STATES = "('transaction_isolation', 'transaction_read_only', 'transaction_deferrable')"


@needs("pg_settings", name="settings", title="Settings")
def settings(interval: Interval, top: int) -> Part:
    """Return the section on settings that changed, and on those that are not the default."""
    before, after = interval.ends("pg_settings")
    changed = interval.query(
        f"""select coalesce(a.name, b.name) as setting, a.setting as before, b.setting as after,
          coalesce(b.unit, a.unit) as unit, b.source as source
        from {before} a full join {after} b using (name)
        where a.setting is distinct from b.setting and coalesce(a.name, b.name) not in {_STATES}
          and coalesce(a.source, '') not in {_OURS} and coalesce(b.source, '') not in {_OURS}
        order by 1"""
    )
    for row in changed:
        row |= {end: shown_value(row["setting"], row[end]) for end in ("before", "after")}
    rows = interval.query(
        f"""select name as setting, setting as value, unit, source from {after}
        where source not in ('default', 'override', 'client', 'session') order by 1"""
    )
    for row in rows:
        row["value"] = shown_value(row["setting"], row["value"])
    pending = interval.query(f"select name from {after} where pending_restart order by name")
    notes = [f"{row['name']} waits for a restart" for row in pending]
    return section(
        "settings",
        "Settings",
        [
            table("Changed", _CHANGED, changed),
            table("Not the default, at the end", _SET, rows),
            table("Storage parameters of tables and indexes", _STORAGE, _storage(interval), top=max(top, 20)),
        ],
        about="values and units as pg_settings has them. Settings that may contain a password are hidden.",
        notes=notes if changed else [*notes, "no setting changed"],
    )


def _storage(interval: Interval) -> list[Row]:
    """Return the storage parameters of tables and indexes, with the changed ones at the top."""
    if not (interval.has("pg_class") and "options" in interval.columns("pg_class")):
        return []
    before, after = interval.ends("pg_class")
    known = "options" in {column.name for column in interval.before.columns("pg_class")}
    named = [
        f"select datid, {key} as oid,"
        f" {relation_name('', has_several_databases(interval)).replace('relname', name)} as name"
        f" from {interval.ends(view)[1]}"
        for view, key, name in (
            ("pg_stat_user_tables", "relid", "relname"),
            ("pg_stat_user_indexes", "indexrelid", "indexrelname"),
        )
        if interval.has(view)
    ]
    if not named:
        return []
    return interval.query(
        f"""select n.name, b.options, {"a.options" if known else "null"} as before,
          {"a.oid is not null and a.options is distinct from b.options" if known else "false"} as changed
        from {after} b join ({" union all ".join(named)}) n on n.datid = b.datid and n.oid = b.oid
          left join {before} a on a.datid = b.datid and a.oid = b.oid
        where b.options is not null or changed order by changed desc, 1"""
    )


def extensions(interval: Interval, top: int) -> Part:
    """Return the section on the extensions of the databases that were read, with their versions."""
    view, title = "pg_extension", "Extensions"
    missing = interval.missing_reason(view)
    if missing:
        older = [end.number for end in (interval.before, interval.after) if view not in end.views]
        why = f"snapshot {older[0]} was taken without them" if older else missing[0]
        return section("extensions", title, not_measured=[missing_measurement("extensions", why, missing[1])])
    name = "coalesce(a.datname, b.datname) || ': ' || " if has_several_databases(interval) else ""
    before, after = interval.ends(view)
    rows = interval.query(
        f"""select {name}coalesce(b.extname, a.extname) as extension, b.extversion as version, a.extversion as before,
          case when a.oid is null then 'created' when b.oid is null then 'dropped'
            when a.extversion <> b.extversion then 'updated' else '' end as change
        from {before} a full join {after} b on a.datid = b.datid and a.oid = b.oid
        order by change = '', 1"""
    )
    shown = _EXTENSIONS if any(row["change"] for row in rows) else _EXTENSIONS[:2]
    return section("extensions", title, [table("", shown, rows)])
