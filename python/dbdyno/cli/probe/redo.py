"""`dbdyno probe redo`: the I/O of a log writer on real files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import PlanError
from dbdyno.base.limits import Count, Number
from dbdyno.cli.output import Output, out_option, seed_option
from dbdyno.cli.parameters import PATH, option_with_default

if TYPE_CHECKING:
    from dbdyno.study.plan.plan import Schedule

_TIME = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_SIZE = {
    "": 1,
    "b": 1,
    "k": 2**10,
    "kib": 2**10,
    "m": 2**20,
    "mib": 2**20,
    "g": 2**30,
    "gib": 2**30,
    "t": 2**40,
    "tib": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
QUANTITY_MOST = float(2**62)
"""Maximum number of bytes or nanoseconds (146 years), to which the core can still add the time of day."""
BLOCKS = 20
BLOCK_NS_MAX = 2 * 10**9
BLOCK_COMMITS_MAX = 200_000


def _quantity(text: str, units: dict[str, int], what: str, example: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in units:
        raise click.BadParameter(f"{text!r} is not a {what}; write it like {example}")
    number = float(match[1]) * units[match[2]]
    if number > QUANTITY_MOST:
        raise click.BadParameter(f"{text!r} is larger than any {what} that this command accepts")
    return round(number)


def parse_time(text: str) -> int:
    """Return a time such as `10s` or `500ms` in nanoseconds."""
    return _quantity(text, _TIME, "time", "500ms or 10s")


def parse_size(text: str) -> int:
    """Return a size such as `4KiB` or `4096` in bytes."""
    return _quantity(text, _SIZE, "size", "4KiB or 64MiB")


@click.command("redo")
@click.argument("path", type=PATH)
@click.argument("path2", required=False, type=PATH)
@click.option(
    "--race",
    is_flag=True,
    help="With two paths: treat a write as complete as soon as one of its two copies is durable.",
)
@option_with_default(
    "--size",
    "sizes",
    default="512",
    metavar="SIZES",
    help="Amount of redo per commit: a size (4KiB), a list (512,4KiB), a range (4KiB..1MiB), or random sizes with a "
    "mean (exp(8KiB)).",
)
@option_with_default("--block-size", type=parse_size, default="4KiB", help="Size of a redo block in bytes.")
@option_with_default(
    "--sync",
    default="direct+dsync",
    metavar="WAY",
    help="How to write: direct+dsync, dsync, fdatasync, direct+fdatasync, or direct (not durable if the device has a "
    "volatile cache).",
)
@option_with_default("--sessions", type=click.IntRange(1, 10_000), default=1, help="Number of sessions that commit.")
@click.option("--think", type=parse_time, default=None, help="Mean think time of a session between commits.")
@click.option(
    "--rate",
    type=Number(0, 1e7, min_open=True),
    help="Open loop: number of commits that arrive per second, however fast the log is.",
)
@click.option("--for", "length", type=parse_time, default=None, help="Stop after this time.  [default: 10s]")
@click.option("--commits", type=Count(), default=None, help="Stop after this number of commits.")
@option_with_default(
    "--file-size",
    type=parse_size,
    default="64MiB",
    help="Size of each log file, which is filled first and then overwritten cyclically.",
)
@click.option(
    "--backlog",
    type=parse_size,
    default=None,
    help="Maximum lag of one copy behind the other.  [default: a quarter of the file, at most 32MiB]",
)
@option_with_default(
    "--outlier", type=parse_time, default="500ms", help="A write that takes this long or longer counts as an outlier."
)
@click.option("--keep", is_flag=True, help="Keep the files for `dbdyno probe recover`.")
@seed_option
@out_option
def command(
    path: Path,
    path2: Path | None,
    race: bool,
    sizes: str,
    block_size: int,
    sync: str,
    sessions: int,
    think: int | None,
    rate: float | None,
    length: int | None,
    commits: int | None,
    file_size: int,
    backlog: int | None,
    outlier: int,
    keep: bool,
    seed: int | None,
    out: Path,
) -> None:
    """Write redo to the file PATH as a log writer does, and keep every latency.

    PATH is a file that does not exist yet, or a folder; the probe creates the file and removes it. With PATH2 every
    write goes to both files: it is complete when both copies are durable, or with --race when the first copy is.

    \b
    dbdyno probe redo /disk/redo --size 512,4KiB,64KiB --sessions 20 --for 10s
    dbdyno probe redo /disk/redo /flash/redo --race --sessions 20
    """
    from dbdyno.base.signals import Interrupted
    from dbdyno.bench.host.probe import LogArm
    from dbdyno.study.plan.host import log_plan
    from dbdyno.study.run.execute import start
    from dbdyno.study.run.progress import progress_for

    if race and path2 is None:
        raise PlanError("a race needs two paths", where="--race", next_step="name a second file")
    arm = LogArm(
        name="race" if race else "log",
        paths=(path,) if path2 is None else (path, path2),
        rule="first" if race else "all",
        sync=sync,
        size=sizes,
        block_bytes=block_size,
        file_bytes=file_size,
        sessions=sessions,
        think_ns=think or 0,
        rate_per_s=rate,
        backlog_bytes=backlog,
        outlier_ns=outlier,
        keep=keep,
    )
    plan = log_plan(
        "probe redo race" if race else "probe redo",
        [arm.with_files()],
        question="How long do the writes of a log take here?",
        kind="probe",
        schedule=_schedule(length, commits),
    )
    progress = progress_for()
    try:
        run = start(plan, out, progress, seed=seed)
    except Interrupted as stop:
        progress.end()
        click.echo("interrupted: the probe's files are removed; complete blocks are kept", err=True)
        raise click.exceptions.Exit(130) from stop
    from dbdyno.cli.run import show

    show(run, Output())


def _schedule(length: int | None, commits: int | None) -> Schedule:
    """Return a schedule of twenty blocks, or more if one would be too large for memory, after one warm-up block."""
    from dbdyno.study.plan.plan import Schedule

    if length is not None and commits is not None:
        raise PlanError("--for and --commits exclude each other", next_step="give one of the two")
    if commits is not None:
        blocks = max(min(BLOCKS, commits), -(-commits // BLOCK_COMMITS_MAX))
        return Schedule(blocks=blocks, warmup_blocks=1, turn_transactions=-(-commits // blocks), settle_ns=0)
    whole = 10 * 10**9 if length is None else length
    if whole < BLOCKS * 10**6:
        raise PlanError("is too short for a result", where="--for", next_step="give a time of 1s or more")
    blocks = max(BLOCKS, -(-whole // BLOCK_NS_MAX))
    return Schedule(blocks=blocks, warmup_blocks=1, turn_ns=whole // blocks, settle_ns=0)
