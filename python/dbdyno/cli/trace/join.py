"""`dbdyno trace join`: calls as seen by both client and server."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import FOLDER


@click.command("join")
@click.argument("proxied", type=FOLDER, metavar="RUN_OF_PROXY")
@click.argument("recorded", type=FOLDER, metavar="RUN_OF_RECORD")
@page_options
def command(proxied: Path, recorded: Path, output: Output) -> None:
    """Split the time of calls into client, network and server.

    RUN_OF_PROXY is a run of `trace proxy`, RUN_OF_RECORD a run of `trace record` on the same machine at the same time.
    Sessions are matched by the ID of the server's process, calls by their time.

    \b
    dbdyno trace proxy --target localhost:5432 --for 60s --out runs/wire
    dbdyno trace record --target postgresql://localhost/app --for 60s --out runs/server
    dbdyno trace join runs/wire runs/server
    """
    from dbdyno.trace.proxy.join import join_page

    show_page(join_page(proxied, recorded), output)
