"""Verdicts on the difference of two MariaDB snapshots.

All of the server's counts are lost with its process, so a start in between invalidates every scope. The start time is
the clock less the uptime, both the server's; since they are in whole seconds, a difference of two seconds is tolerated.
Between two snapshots of one server process, the table of digests may have been emptied (it never drops single entries:
once full, it counts all further statements in one row), single rows may have been reset (a counter fell), and tables
may have been recreated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.mariadb.views import STATEMENTS
from dbdyno.snapshot.engines.view import Verdict

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.ends import Ends
    from dbdyno.snapshot.reading.interval import Interval

SCOPES = ("cluster", "status", "statements", "tables", "waits")
JITTER_US = 2_000_000


def judge(interval: Ends) -> dict[tuple[str, str | None], Verdict]:
    """Return a verdict for each scope that is not ok."""
    before, after = interval.before.facts, interval.after.facts
    if before.get("identity") != after.get("identity"):
        why = "another server answers at this address"
        return dict.fromkeys(_scopes(), Verdict("failover", why, after["started_us"]))
    if abs(after["started_us"] - before["started_us"]) > JITTER_US:
        why = "the server was restarted: its counters began at zero"
        return dict.fromkeys(_scopes(), Verdict("restart", why, after["started_us"]))
    if _emptied(interval):
        why = "the digest table was emptied"
        return {("statements", None): Verdict("reset", why)}
    return {}


def refine(interval: Interval, view: str) -> None:
    """Correct a difference in the ways specific to MariaDB: subtract dbdyno's activity, mark recreated tables."""
    if view == "global_status":
        _take_own_out(interval)
    elif view.startswith("table_io_waits_summary") and "TABLE_ID" in interval.columns(view):
        _made_anew(interval, view)


def _take_own_out(interval: Interval) -> None:
    """Subtract from the counters what the collector added.

    If one session took both snapshots, that amount is the difference of the session's counts. With two sessions it is
    the sum of what the first session added after its counters were read, its logout, and what the second session added
    before its counters were read.
    """
    before, after = interval.before.facts, interval.after.facts
    same = before.get("session") == after.get("session")
    own = "own - own_before" if same else "own_end_before - own_before + own + (name = 'questions')::int"
    interval.connection.execute(
        f"update global_status set value = value - ({own}) where verdict = 'ok' and value >= {own}"
    )


def _made_anew(interval: Interval, view: str) -> None:
    """Mark tables that were recreated between the snapshots as reset.

    For a recreated table, InnoDB's table number and both the minimum and the maximum wait time differ. A TRUNCATE
    changes the number too, but keeps the counters and one of these two times.
    """
    columns = interval.after.columns(view)
    counters = ", ".join(f'"{c.name}" = null' for c in columns if c.kind == "counter")
    interval.connection.execute(
        f"update {view} set {counters}, verdict = 'reset',"
        " why = 'the table was recreated, or truncated'"
        " where verdict = 'ok' and life = 'kept' and TABLE_ID <> TABLE_ID_before"
        " and MIN_TIMER_WAIT <> MIN_TIMER_WAIT_before"
        " and MAX_TIMER_WAIT <> MAX_TIMER_WAIT_before"
    )


def _scopes() -> list[tuple[str, str | None]]:
    return [(scope, None) for scope in SCOPES]


def _emptied(interval: Ends) -> bool:
    if not interval.has(STATEMENTS.name):
        return False
    before, after = interval.ends(STATEMENTS.name)
    row = interval.connection.execute(
        f"select count(*) from {before} a left join {after} b using (SCHEMA_NAME, DIGEST)"
        " where b.FIRST_SEEN is distinct from a.FIRST_SEEN"
    ).fetchone()
    return bool(row and row[0])
