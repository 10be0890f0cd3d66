"""`dbdyno trace`: commands on traces, one file per command, each imported when it is called."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "trace",
    package=__name__,
    rows={
        "report": "One linked page: profile, statements, plans, waits, trees.",
        "profile": "Where did the time go: CPU, each event, the rest.",
        "sql": "Statements: call table, waits, plan, parents, children.",
        "waits": "The waits of one event: quantiles, shape, the longest.",
        "tree": "The recursion tree of one execution.",
        "timeline": "What each session did, second by second.",
        "check": "Check what was read and whether the times add up.",
        "record": "Every wait of a live PostgreSQL, exactly timed.",
        "proxy": "Time PostgreSQL from the side of its clients, on the wire.",
        "join": "Join a proxy's run and a recording: client, network, server.",
        "replay": "Replay what a proxy or a log captured.",
        "import": "Turn traces or server logs into evidence.",
        "write": "Turn evidence back into trace files.",
    },
    help="""Read Oracle extended SQL traces (event 10046) of any version, size and state; record PostgreSQL's waits.

    FILES are trace files (also gz, xz, bz2, zstd), folders, quoted patterns, `-` for standard
    input, or one imported run. Two sets of traces: `dbdyno compare A/ B/`.
    """,
)
