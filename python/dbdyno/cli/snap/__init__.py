"""`dbdyno snap`: commands on snapshots, one file per command, each imported when it is called."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "snap",
    package=__name__,
    rows={
        "take": "Take one snapshot of a live engine.",
        "watch": "Take snapshots at an interval, and sample the sessions in between.",
        "list": "List the snapshots.",
        "report": "What happened between two snapshots.",
        "statement": "One statement between two snapshots: calls, time, latencies, plans, waits.",
        "sessions": "Who was active between two snapshots, on what, and who blocked whom.",
        "plans": "Plans of statements from the server's log, and when they changed.",
        "baseline": "Give a period a name, to compare other periods with it.",
        "prune": "Thin out a store by age; reports over that time still work.",
        "check": "Check every file of a store, and repair it.",
        "export": "The latest snapshots for Prometheus and OpenTelemetry.",
        "top": "Show continuously what a server is doing.",
    },
    help="""Snapshots of a live engine: take some, and report what happened between two.

    Nothing is created, installed or reset in the target; sessions are read-only, and every statement and lock has a
    timeout. To compare two periods, use `dbdyno compare snap:1..2 snap:7..8`.
    """,
)
