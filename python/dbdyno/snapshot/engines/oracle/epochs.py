"""Verdicts on the difference of two Oracle snapshots.

The counters live as long as the instance. Another database, or another incarnation of it, is a failover; another start
of the instance is a restart. Statements age out of the shared pool: if one disappeared, others may have disappeared and
come back, and a new entry did not necessarily begin at zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.view import Verdict

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.ends import Ends

SCOPES = ("cluster", "instance", "segments", "statements")


def judge(interval: Ends) -> dict[tuple[str, str | None], Verdict]:
    """Return a verdict for each scope that is not ok."""
    before, after = interval.before.facts, interval.after.facts
    for name, word, why in (
        ("dbid", "failover", "another database answers at this address"),
        ("resetlogs", "failover", "the database was opened with resetlogs"),
        ("instance_number", "failover", "another instance answers at this address"),
        ("host_name", "failover", "the instance runs on another host"),
        ("started", "restart", "the instance was restarted: its counters began at zero"),
    ):
        if before.get(name) != after.get(name):
            verdict = Verdict(word, f"{why} ({before.get(name)}, now {after.get(name)})")
            return {(scope, None): verdict for scope in SCOPES}
    lost = _aged_out(interval)
    if lost:
        why = f"{lost} statements were aged out of the shared pool"
        return {("statements", None): Verdict("evicted", why)}
    return {}


def _aged_out(interval: Ends) -> int:
    if not interval.has("sql"):
        return 0
    before, after = interval.ends("sql")
    row = interval.connection.execute(
        f"select count(*) from {before} a anti join {after} b using (sql_id, plan_hash_value)"
    ).fetchone()
    return int(row[0]) if row else 0
