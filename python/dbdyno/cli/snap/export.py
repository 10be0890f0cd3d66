"""`dbdyno snap export`: the last snapshots for Prometheus and OpenTelemetry."""

from __future__ import annotations

import http.server
import ipaddress
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from dbdyno.base.files import os_errors_as
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.snap.options import store_option

if TYPE_CHECKING:
    from dbdyno.snapshot.sending.exports import CachedText


@click.command("export")
@click.option(
    "--prometheus",
    "listen",
    metavar="[HOST]:PORT",
    help="Serve /metrics for Prometheus at this address (default host: 127.0.0.1).",
)
@click.option(
    "--otlp", "url", metavar="URL", help="Post the metrics to this collector, such as http://127.0.0.1:4318/v1/metrics."
)
@option_with_default("--every", default="60s", metavar="TIME", help="Interval between posts.")
@click.option("--once", is_flag=True, help="Post once (--otlp), or print the text for Prometheus once, and exit.")
@click.option("--tables", is_flag=True, help="Also export the counters of each table.")
@click.option(
    "--anywhere", is_flag=True, help="Allow --prometheus to listen on an address that other machines can reach."
)
@store_option
def command(
    listen: str | None, url: str | None, every: str, once: bool, tables: bool, anywhere: bool, store: Path
) -> None:
    """Export the latest snapshot of each target to a monitoring system.

    It reads only the store (or a folder with the stores of a fleet) and contacts no server. Ctrl-C ends it.

    \b
    dbdyno snap export --prometheus 127.0.0.1:9187
    dbdyno snap export --otlp http://127.0.0.1:4318/v1/metrics
    dbdyno snap export --once
    """
    from dbdyno.snapshot.sending.exports import CachedText, samples
    from dbdyno.trace.units import length_ns

    if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise click.UsageError("--otlp: write an address such as http://127.0.0.1:4318/v1/metrics")
    if listen is None and url is None and not once:
        raise click.UsageError("name --prometheus HOST:PORT, --otlp URL, or --once")
    every_s = length_ns(every, "--every") / 1e9
    if once:
        if url is not None:
            _post(url, store, tables)
        else:
            from dbdyno.snapshot.sending.exports import prometheus

            click.echo(prometheus(samples(store, tables=tables)), nl=False)
        return
    stop = threading.Event()
    server = _server(*_address(listen, anywhere), CachedText(store, tables=tables)) if listen else None
    try:
        if server is not None:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            host, port = server.server_address[:2]
            click.echo(f"http://{host!s}:{port}/metrics")
        while True:
            if url is not None:
                _try_post(url, store, tables)
            stop.wait(every_s if url is not None else 3600.0)
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()


def _address(text: str, anywhere: bool) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError("--prometheus: write HOST:PORT, such as 127.0.0.1:9187")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and not anywhere:
        raise click.UsageError(
            f"--prometheus: other machines can reach {host} and read the names of databases and tables: add "
            f"--anywhere to allow this"
        )
    return host, int(port)


def _server(host: str, port: int, cached: CachedText) -> http.server.ThreadingHTTPServer:
    class Handler(http.server.BaseHTTPRequestHandler):
        """Handler that answers /metrics and nothing else."""

        timeout = 10

        def do_GET(self) -> None:
            """Send the metrics as text."""
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "try /metrics")
                return
            body = cached.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: a scrape per minute is not worth a message."""

    from dbdyno.base.errors import SnapshotError

    with os_errors_as(SnapshotError, "cannot listen", f"{host}:{port}", "name another port"):
        return http.server.ThreadingHTTPServer((host, port), Handler)


def _post(url: str, store: Path, tables: bool) -> None:
    from dbdyno.base.dsn import sql_without_secrets
    from dbdyno.base.errors import SnapshotError, errors_as
    from dbdyno.snapshot.sending.alerts import TIMEOUT_S, post_json
    from dbdyno.snapshot.sending.exports import otlp, samples

    where, step = sql_without_secrets(url.partition("?")[0]), "check that the collector is listening"
    with errors_as(SnapshotError, OSError, "cannot receive the metrics", where, step):
        post_json(url, otlp(samples(store, tables=tables)), TIMEOUT_S)


def _try_post(url: str, store: Path, tables: bool) -> None:
    from dbdyno.base.errors import Error

    try:
        _post(url, store, tables)
    except Error as error:
        click.echo(f"dbdyno: {error}", err=True)
