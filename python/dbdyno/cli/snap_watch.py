"""`dbdyno snap watch`: a snapshot per period, the sessions sampled between."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from dbdyno.cli.output import share_option
from dbdyno.cli.snap_options import options_of, store_option, target_options


@click.command("watch")
@target_options
@click.option("--every", default="60s", show_default=True, metavar="TIME", help="The period.")
@click.option("--for", "length", metavar="TIME", help="Stop after this time (default: Ctrl-C).")
@click.option(
    "--sample", default="1s", show_default=True, metavar="TIME", help="Look at the sessions so often; 0 for never."
)
@share_option
@store_option
def command(
    dsn: str,
    name: str | None,
    databases: tuple[str, ...],
    all_databases: bool,
    redact: bool,
    statement_timeout: float,
    lock_timeout: float,
    note: str,
    every: str,
    length: str | None,
    sample: str,
    store: Path,
) -> None:
    """Take a snapshot now and one per period; print each number.

    Ctrl-C takes a last snapshot and ends; a second one ends at once. What fails is told, and watching goes on.

    \b
    dbdyno snap watch --target postgresql://monitor@db1/app --every 60s --for 1h
    """
    from dbdyno.errors import SnapshotError
    from dbdyno.signals import Stopping
    from dbdyno.snapshot.store import Store
    from dbdyno.snapshot.take import watch
    from dbdyno.trace.units import length_ns

    options = options_of(name, databases, all_databases, redact, statement_timeout, lock_timeout)
    every_s = length_ns(every, "--every") / 1e9
    for_s = length_ns(length, "--for") / 1e9 if length else None
    sample_s = None if sample.strip("0.s ") == "" else length_ns(sample, "--sample") / 1e9
    stop = threading.Event()
    failed = None
    with Stopping() as stopping:
        stopping.on_ask = stop.set
        for made in watch(
            dsn,
            Store(store),
            options,
            every_s=every_s,
            for_s=for_s,
            sample_s=sample_s,
            note=note,
            stop=stop,
        ):
            failed = made if isinstance(made, SnapshotError) else None
            if failed is not None:
                click.echo(f"dbdyno: {failed}", err=True)
            elif not isinstance(made, SnapshotError):
                click.echo(made.number)
    if failed is not None:
        raise click.exceptions.Exit(2)
