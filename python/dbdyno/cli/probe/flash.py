"""`dbdyno probe flash`: read, write and overwrite a file or device until it is in a steady state."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import PlanError
from dbdyno.cli.output import Output, out_option, seed_option
from dbdyno.cli.parameters import PATH, option_with_default
from dbdyno.cli.probe.redo import parse_size, parse_time

if TYPE_CHECKING:
    from dbdyno.bench.host.flash import FlashTarget

ROUND_NS, ROUNDS = 5 * 10**9, 25
QUICK_ROUND_NS, QUICK_ROUNDS, QUICK_BYTES = 5 * 10**8, 10, 64 << 20
ROUND_LEAST_NS = 10**7


@click.command("flash")
@click.argument("path", type=PATH)
@option_with_default("--size", "block", type=parse_size, default="4KiB", help="Size of a request, up to 1MiB.")
@option_with_default(
    "--depth", type=click.IntRange(1, 256), default=1, help="Number of concurrent requests (queue depth)."
)
@option_with_default(
    "--sync",
    default="direct",
    metavar="WAY",
    help="How to write: direct, direct+dsync, dsync, fdatasync or direct+fdatasync.",
)
@click.option(
    "--file-size",
    type=parse_size,
    default=None,
    help="Size of the tested area.  [default: a new file of 1GiB; with --destroy, all of PATH]",
)
@click.option("--round", "round_ns", type=parse_time, default=None, help="Length of a round.  [default: 5s]")
@click.option("--rounds", type=click.IntRange(1, 1000), default=None, help="Maximum number of rounds.  [default: 25]")
@option_with_default("--for", "limit_ns", type=parse_time, default="10min", help="Stop after this time.")
@click.option("--quick", is_flag=True, help="A short trial: 64MiB and 10 rounds of 500ms.")
@click.option("--destroy", is_flag=True, help="Overwrite the existing file or device PATH; asks first.")
@seed_option
@out_option
def command(
    path: Path,
    block: int,
    depth: int,
    sync: str,
    file_size: int | None,
    round_ns: int | None,
    rounds: int | None,
    limit_ns: int,
    quick: bool,
    destroy: bool,
    seed: int | None,
    out: Path,
) -> None:
    """Write a whole file once, read it, and overwrite it at random until the rate is steady or the rounds are over.

    PATH is a file that does not exist yet, or a folder; the file has no name while it is in use, and is gone at the
    end. With --destroy, PATH is a file or a block device of yours that nothing uses.

    \b
    dbdyno probe flash /flash --quick
    dbdyno probe flash /flash --size 8KiB --depth 16 --file-size 20GiB --round 60s --for 2h
    """
    from dbdyno.base.signals import Interrupted
    from dbdyno.bench.host.flash import FlashTarget, flash_path
    from dbdyno.study.run.flash import Pace, measure
    from dbdyno.study.run.progress import progress_for

    pace = Pace(
        round_ns or (QUICK_ROUND_NS if quick else ROUND_NS), rounds or (QUICK_ROUNDS if quick else ROUNDS), limit_ns
    )
    if pace.round_ns < ROUND_LEAST_NS:
        raise PlanError("is too short for a result", where="--round", next_step="give a time of 10ms or more")
    wanted = file_size or (QUICK_BYTES if quick else None)
    target = FlashTarget(flash_path(path, destroy), block, wanted, depth, sync, destroy)
    if destroy:
        _ask(target)
    try:
        run = measure(target, pace, out, progress_for(), seed)
    except Interrupted as stop:
        click.echo("interrupted: complete phases are kept", err=True)
        raise click.exceptions.Exit(130) from stop
    from dbdyno.cli.run import show

    show(run, Output())


def _ask(target: FlashTarget) -> None:
    """Ask the owner to type the path of what will be destroyed; any other input ends the command."""
    from dbdyno.bench.host.flash import capacity
    from dbdyno.stats.wording import size as words

    path, whole = str(target.path), capacity(target.path)
    part = min(target.file_bytes or whole, whole)
    click.echo(f"{path} has {words(whole)}. The first {words(part)} of it will be overwritten and cannot be recovered.")
    click.echo("Type its path to continue:")
    if sys.stdin.readline().strip() != path:
        raise PlanError(
            "the path was not confirmed, so nothing was changed", where=path, next_step="type the path exactly as shown"
        )
