"""`dbdyno ui`: runs, servers and their history as pages in a browser."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import Error
from dbdyno.cli.output import Output, folder_option, form_of, output_options
from dbdyno.cli.pages import terminal
from dbdyno.cli.parameters import EXISTING_FILE, option_with_default
from dbdyno.cli.snap.options import store_option

if TYPE_CHECKING:
    from dbdyno.ui.places import Places

NEEDED = ("starlette", "uvicorn")
MEMORY = "192MB"
"""Memory limit for the queries of each view; larger intermediate data are spilled to disk."""
FORMS = ("text", "json", "csv", "arrow", "svg", "png")
"""Forms in which a page can be printed."""


@click.command("ui")
@folder_option
@store_option
@option_with_default(
    "--port", type=click.IntRange(0, 65535), default=8421, help="Port to listen on; 0 selects a free port."
)
@option_with_default("--listen", "host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on.")
@click.option("--tls-cert", type=EXISTING_FILE, help="Certificate (PEM), which allows access from other machines.")
@click.option("--tls-key", type=EXISTING_FILE, help="Private key of the certificate, if it is in a separate file.")
@click.option(
    "--behind-proxy",
    "proxy",
    default="",
    metavar="ORIGIN",
    help="Address under which browsers reach an encrypting proxy: https://host",
)
@click.option("--browser/--no-browser", default=True, help="Open a browser.")
@option_with_default(
    "--read-only-sql",
    type=click.Choice(("on", "off")),
    default="on",
    help="Enable the SQL console, which is read-only.",
)
@click.option("--page", metavar="ADDRESS", help="Print this page instead of serving it, such as /search?q=orders.")
@output_options(FORMS)
def command(
    folder: Path,
    store: Path,
    port: int,
    host: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    proxy: str,
    browser: bool,
    read_only_sql: str,
    page: str | None,
    output: Output,
) -> None:
    """Show runs and servers as pages in a browser, on this machine only.

    The printed address contains a token; everybody who has it may read the pages. Only caches are written, no server is
    contacted, no plan is run, and no file outside the two folders is read. --store may be a folder of stores.

    \b
    dbdyno ui
    dbdyno ui --runs results --store snaps --port 0 --no-browser
    dbdyno ui --listen 0.0.0.0 --tls-cert host.pem
    dbdyno ui --page '/search?q=orders' --format csv
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise Error(
            f"the packages for pages in a browser are not installed: {' and '.join(missing)}",
            next_step="run `pip install 'dbdyno[ui]'`",
        )
    from dbdyno.ui.places import Places

    for what, place in (("--runs", folder), ("--store", store)):
        if not place.is_dir():
            click.echo(
                f"note: {what}: folder {place} does not exist; its pages are empty until it is created", err=True
            )
    if page is not None:
        _print(Places(folder, store), page, output, sql=read_only_sql == "on")
        return
    if output != Output():
        raise Error(
            "--format and -o work only with one page", next_step="name the page, as in --page '/search?q=orders'"
        )
    from dbdyno.evidence.memory import limit_memory
    from dbdyno.ui.app import application
    from dbdyno.ui.preparer import Preparer
    from dbdyno.ui.serve import ListeningAddress, access_of, bind_socket, first_address, require_encryption, serve

    where = ListeningAddress(host, port, tls_cert, tls_key, proxy)
    require_encryption(where)
    made = bind_socket(where)
    bound = int(made.getsockname()[1])
    access = access_of(where, bound)
    limit_memory(MEMORY)
    preparer = Preparer()
    app = application(Places(folder, store, preparer), access, sql=read_only_sql == "on")

    def ready() -> None:
        address = first_address(where, access, bound)
        click.echo(address)
        if browser:
            import webbrowser

            webbrowser.open(address)

    try:
        serve(app, where, made, ready)
    finally:
        preparer.end()


def _print(places: Places, page: str, output: Output, *, sql: bool) -> None:
    """Print one page, or write it into a file."""
    from dbdyno.report.files import write_whole
    from dbdyno.ui.page_printer import print_page

    width, color = terminal(output.path)
    made = print_page(places, page, form_of(output, FORMS, "text"), width, color, sql=sql)
    if output.path is None:
        click.echo(made, nl=False)
    else:
        write_whole(output.path, made)
        click.echo(str(output.path), err=True)
