"""`dbdyno client`: commands on external clients, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "client",
    package=__name__,
    rows={
        "check": "Check whether a client follows the protocol, and what it costs.",
        "list": "The built-in clients, and which are installed.",
    },
    help="""External clients: programs that run a plan's load in place of dbdyno's own.""",
)
