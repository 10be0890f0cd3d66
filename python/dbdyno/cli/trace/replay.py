"""`dbdyno trace replay`: replay of a proxy's capture."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.cli.output import show_line

if TYPE_CHECKING:
    from dbdyno.trace.proxy.replay import Replaying

_LOOK_S = 0.05
_SHOWN_S = 1.0


@click.command("replay")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--target",
    "dsn",
    required=True,
    metavar="DSN",
    help="Server to replay on; all sessions log in with this connection string.",
)
@click.option("--speed", default="1", show_default=True, metavar="N|max", help="Speed factor; max: without think time.")
@click.option(
    "--order",
    type=click.Choice(("none", "commit")),
    default="none",
    show_default=True,
    help="commit: send statements only after the commits that preceded them in the capture.",
)
@click.option("--writes", is_flag=True, help="Allow writes: the target is a copy (default: read-only sessions).")
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    help="Replay only transactions that begin at least this long after the first message.",
)
@click.option("--to", "end", metavar="TIME", help="Replay only transactions that begin before this time.")
@click.option(
    "--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True, help="Output format."
)
def command(
    run: Path, dsn: str, speed: str, order: str, writes: bool, begin: str | None, end: str | None, form: str
) -> None:
    """Run again what `trace proxy --binds` or `trace import --log` captured in RUN: sessions, messages, think times.

    Numbers of rows and SQLSTATEs are held against those of the capture; keys that RETURNING gave then are replaced by
    those that it gives now. Exit 1 where answers differ.

    \b
    dbdyno trace replay runs/now --target postgresql://localhost/copy --writes
    dbdyno trace replay runs/now --target postgresql://localhost/copy --writes --speed max --order commit
    dbdyno trace replay runs/now --target postgresql://localhost/copy --from 10min --to 12min
    """
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.evidence.captures import captured
    from dbdyno.trace.proxy.replay import Wanted, differences, replaying, sentences, speed_of

    wanted = Wanted(speed_of(speed), order == "commit", writes, *_part(begin, end))
    captured(run)
    connection = Postgres.open(dsn).conninfo()
    with replaying(run, connection, wanted) as it:
        _wait(it)
    report = it.report
    if form == "json":
        click.echo(json.dumps(report, indent=1))
    else:
        for sentence in sentences(report, wanted):
            click.echo(sentence)
        for line in report["told"]:
            click.echo(f"  {line}")
    if differences(report):
        raise click.exceptions.Exit(1)


def _part(begin: str | None, end: str | None) -> tuple[int | None, int | None]:
    from dbdyno.trace.units import length_ns

    from_ns = length_ns(begin, "--from") if begin else None
    to_ns = length_ns(end, "--to") if end else None
    if from_ns is not None and to_ns is not None and from_ns >= to_ns:
        raise click.UsageError(f"--from {begin} is not before --to {end}")
    return from_ns, to_ns


def _wait(it: Replaying) -> None:
    """Wait until the replay ends or Ctrl-C, with a line of figures on a terminal."""
    shows, shown_at = sys.stderr.isatty(), time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        while not it.is_over():
            time.sleep(_LOOK_S)
            if shows and time.monotonic() - shown_at >= _SHOWN_S:
                shown_at = time.monotonic()
                at = it.look()
                said = f"{at['turns']:,} of {at['turns_all']:,} round trips, {at['sessions']} sessions"
                show_line(f"{said}, {at['differing']} differ")
    if shows:
        show_line()
