"""`dbdyno trace proxy`: time PostgreSQL on the wire, as its clients see it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from dbdyno.cli.output import key_file_option
from dbdyno.cli.parameters import EXISTING_FILE, FOLDER, option_with_default
from dbdyno.cli.trace.options import wait_for


@click.command("proxy")
@option_with_default(
    "--listen",
    default="127.0.0.1:6543",
    metavar="ADDRESS:PORT",
    help="Address to which clients connect; port 0 selects a free port.",
)
@click.option(
    "--target",
    "to",
    required=True,
    metavar="HOST:PORT",
    help="Server to which messages are passed on; /FOLDER:PORT is a Unix socket.",
)
@click.option("--out", type=FOLDER, metavar="RUN", help="Run folder to create. Default: runs/<time>-wire.")
@click.option("--for", "length", metavar="TIME", help="Stop after this time, such as 60s (default: until Ctrl-C).")
@click.option("--binds", is_flag=True, help="Keep every message with its values, for `trace replay`.")
@key_file_option
@click.option(
    "--tls-cert", type=EXISTING_FILE, metavar="FILE", help="Offer TLS to clients with this certificate (PEM)."
)
@click.option("--tls-key", type=EXISTING_FILE, metavar="FILE", help="Private key of the certificate (PEM).")
@option_with_default(
    "--server-tls",
    type=click.Choice(("disable", "prefer", "require", "verify-ca", "verify-full")),
    default="disable",
    help="Use of TLS to the server; the values mean the same as those of libpq's sslmode.",
)
@click.option(
    "--server-ca",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Root certificates (PEM) with which to verify the server's certificate.",
)
@option_with_default(
    "--spin",
    default="auto",
    metavar="auto|off|TIME",
    help="Time to poll for the next message before sleeping, e.g. 50us. auto: poll while messages come quickly and a "
    "processor is idle.",
)
def command(
    listen: str,
    to: str,
    out: Path | None,
    length: str | None,
    binds: bool,
    key_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    server_tls: str,
    server_ca: Path | None,
    spin: str,
) -> None:
    """Forward clients to a PostgreSQL server, and time every message.

    It needs no privilege on the server. It records calls, think time, rows, bytes and SQLSTATE of every session, as its
    clients see them, and statements without their literals. All commands on traces can read the run. When the command
    ends, the sessions are closed.

    \b
    dbdyno trace proxy --target localhost:5432 --for 60s --out runs/now
    psql "host=127.0.0.1 port=6543 dbname=app"
    dbdyno trace profile runs/now
    """
    from dbdyno.trace.proxy.proxy_run import ProxyOptions, run_proxy, server_of, spin_ns
    from dbdyno.trace.units import length_ns

    for_ns = length_ns(length, "--for") if length else None
    out = out or Path("runs") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-wire"
    if key_file is not None and not binds:
        raise click.UsageError("--key-file has no effect without --binds: messages are not kept")
    spin_for_ns = spin_ns(spin)
    wanted = ProxyOptions(
        listen, server_of(to), for_ns, binds, tls_cert, tls_key, server_tls, server_ca, spin_for_ns, key_file
    )
    _more_descriptors()
    with run_proxy(wanted, out) as it:
        click.echo(f"dbdyno: clients of {to} connect to {it.address}; Ctrl-C ends it", err=True)
        wait_for(it.is_over, lambda: status_line(it.read_report()))
    report = it.report
    click.echo(f"{out}: {report['calls']} calls of {report['sessions_all']} sessions")
    click.echo(f"next: dbdyno trace profile {out}", err=True)
    if report["lost_track"]:
        raise click.exceptions.Exit(2)


def _more_descriptors() -> None:
    """Raise the limit of open files to this user's maximum, because each session needs two."""
    import resource

    with contextlib.suppress(ValueError, OSError):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def status_line(report: Mapping[str, Any]) -> str:
    """Return a line with sessions, calls, calls per second, their median time, and the number of problems."""
    if not report:
        return "clients are awaited"
    wrong = sum(report[key] for key in ("unreachable", "rubbish", "broken", "lost_track", "tls_refused"))
    p50 = "-" if report["p50_ns"] is None else f"{report['p50_ns'] / 1e3:,.0f} us"
    said = (
        f"{report['elapsed_ns'] / 1e9:.0f} s: {report['sessions']} sessions, {report['calls']:,} calls,"
        f" {report['calls_per_s']:,.0f} calls/s, p50 {p50}"
    )
    return f"{said}; {wrong} failed, the last: {report['last']}" if wrong else said
