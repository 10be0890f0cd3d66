"""`dbdyno snap`: commands on snapshots, one file per command, each imported when it is called."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "take": ("dbdyno.cli.snap.take", "Take one snapshot of a live engine."),
    "watch": ("dbdyno.cli.snap.watch", "Take snapshots at an interval, and sample the sessions in between."),
    "list": ("dbdyno.cli.snap.list", "List the snapshots."),
    "report": ("dbdyno.cli.snap.report", "What happened between two snapshots."),
    "statement": (
        "dbdyno.cli.snap.statement",
        "One statement between two snapshots: calls, time, latencies, plans, waits.",
    ),
    "sessions": ("dbdyno.cli.snap.sessions", "Who was active between two snapshots, on what, and who blocked whom."),
    "plans": ("dbdyno.cli.snap.plans", "Plans of statements from the server's log, and when they changed."),
    "baseline": ("dbdyno.cli.snap.baseline", "Give a period a name, to compare other periods with it."),
    "prune": ("dbdyno.cli.snap.prune", "Thin out a store by age; reports over that time still work."),
    "check": ("dbdyno.cli.snap.check", "Check every file of a store, and repair it."),
    "export": ("dbdyno.cli.snap.export", "The latest snapshots for Prometheus and OpenTelemetry."),
    "top": ("dbdyno.cli.snap.top", "Show continuously what a server is doing."),
}


@click.group("snap", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Snapshots of a live engine: take some, and report what happened between two.

    Nothing is created, installed or reset in the target; sessions are read-only, and every statement and lock has a
    timeout. To compare two periods, use `dbdyno compare snap:1..2 snap:7..8`.
    """
