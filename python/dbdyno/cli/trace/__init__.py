"""`dbdyno trace`: commands on traces, one file per command, each imported when it is called."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "report": ("dbdyno.cli.trace.report", "One linked page: profile, statements, plans, waits, trees."),
    "profile": ("dbdyno.cli.trace.profile", "Where did the time go: CPU, each event, the rest."),
    "sql": ("dbdyno.cli.trace.sql", "Statements: call table, waits, plan, parents, children."),
    "waits": ("dbdyno.cli.trace.waits", "The waits of one event: quantiles, shape, the longest."),
    "tree": ("dbdyno.cli.trace.tree", "The recursion tree of one execution."),
    "timeline": ("dbdyno.cli.trace.timeline", "What each session did, second by second."),
    "check": ("dbdyno.cli.trace.check", "Check what was read and whether the times add up."),
    "record": ("dbdyno.cli.trace.record", "Every wait of a live PostgreSQL, exactly timed."),
    "proxy": ("dbdyno.cli.trace.proxy", "Time PostgreSQL from the side of its clients, on the wire."),
    "join": ("dbdyno.cli.trace.join", "Join a proxy's run and a recording: client, network, server."),
    "replay": ("dbdyno.cli.trace.replay", "Replay what a proxy or a log captured."),
    "import": ("dbdyno.cli.trace.imports", "Turn traces or server logs into evidence."),
    "write": ("dbdyno.cli.trace.write", "Turn evidence back into trace files."),
}


@click.group("trace", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Read Oracle extended SQL traces (event 10046) of any version, size and state; record PostgreSQL's waits.

    FILES are trace files (also gz, xz, bz2, zstd), folders, quoted patterns, `-` for standard
    input, or one imported run. Two sets of traces: `dbdyno compare A/ B/`.
    """
