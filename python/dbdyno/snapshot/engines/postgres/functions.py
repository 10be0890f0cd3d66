"""Report section on functions: number of calls and their time, if the server tracks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import MissingMeasurement, Part, columns, missing_measurement, section, table
from dbdyno.snapshot.engines.postgres.section_helpers import has_several_databases, setting
from dbdyno.snapshot.engines.shared_sections import needs, unknown_rows_table

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

VIEW = "pg_stat_user_functions"
_FUNCTIONS = columns("function:text calls time:ns self:ns mean:ns mean_self:ns")


@needs(VIEW, name="functions", title="Functions")
def functions(interval: Interval, top: int) -> Part:
    """Return the section on functions, sorted by time and by calls, and on trigger functions."""
    name = "case when schemaname = 'public' then funcname else schemaname || '.' || funcname end"
    if has_several_databases(interval):
        name = f"datname || ': ' || {name}"
    trigger = "is_trigger is true" if "is_trigger" in interval.columns(VIEW) else "false"
    rows = interval.query(
        f"""select {name} as function, calls, total_time * 1e6 as time, self_time * 1e6 as self,
          total_time * 1e6 / nullif(calls, 0) as mean, self_time * 1e6 / nullif(calls, 0) as mean_self,
          {trigger} as is_trigger, verdict, why
        from {VIEW} where verdict = 'ok' and calls > 0 order by time desc, calls desc, function""",
        VIEW,
    )
    tracked = setting(interval, "track_functions")
    triggers = [row for row in rows if row["is_trigger"]]
    return section(
        "functions",
        "Functions",
        [
            table("By time", _FUNCTIONS, rows, top=top),
            table("By calls", _FUNCTIONS, sorted(rows, key=lambda row: -row["calls"]), top=top),
            table("Of triggers, by time", _FUNCTIONS, triggers, top=top),
            unknown_rows_table(interval, VIEW, name, top),
        ],
        about="time: in the function and all functions that it called; self: only in itself. A function that the "
        "planner inlines is not counted.",
        not_measured=[_untracked(tracked, bool(rows))],
        notes=[] if rows or tracked == "none" else ["no tracked function was called"],
    )


def _untracked(tracked: str | None, any_seen: bool) -> MissingMeasurement | None:
    if tracked == "all" or tracked is None:
        return None
    if tracked == "pl":
        return missing_measurement("functions in SQL and C", "track_functions is pl", "track_functions = all")
    some = " for the role of these snapshots; the sessions of others may count them" if any_seen else ""
    return missing_measurement("functions", f"track_functions is {tracked}{some}", "track_functions = all")
