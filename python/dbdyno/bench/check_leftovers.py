"""Doctor check for settings that earlier runs left changed on the server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dbdyno.bench.check import Outcome
from dbdyno.bench.postgres import leftovers

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]


def leftover_settings(target: Postgres, conn: Connection) -> Outcome:
    """Check whether a killed run left a setting of this server changed."""
    here = leftovers.sources_of_server(target, conn, leftovers.sources())
    return check_findings(leftovers.compare_with_server(conn, here))


def check_findings(findings: Iterable[leftovers.Finding]) -> Outcome:
    """Return the doctor check of whether an earlier run left a setting of the server changed."""
    left = [one for one in findings if one.state == "ours"]
    if not left:
        return Outcome(True, "nothing", "no run has left a changed setting on this server")
    record = left[0].source.record
    steps = {
        "held": "wait until that run has ended",
        "retrying": f"wait: its guardian (process {record.guardian.get('pid')}) is still trying to restore the setting",
        "left": leftovers.restore_command(record),
    }
    return Outcome(
        False,
        ", ".join(one.sentence for one in left) + f"; {leftovers.describe(record)}",
        "measurements now use that value, and dbdyno refuses a new run",
        steps[record.state],
    )
