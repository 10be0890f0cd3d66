"""`dbdyno runs import`: import the output of other benchmark programs as a run."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import Error
from dbdyno.cli.output import share_option
from dbdyno.cli.parameters import FILE, PATH, option_with_default

SHOWN = 5


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=FILE)
@share_option
@click.option("--out", required=True, metavar="RUN", type=PATH, help="Run folder to create.")
@click.option(
    "--title", default="", metavar="TEXT", help="Name of the benchmark; required if the files do not contain one."
)
@option_with_default(
    "--blocks",
    type=click.IntRange(2, 10_000),
    default=20,
    help="Number of blocks into which individually timed operations are divided.",
)
@click.option(
    "--started",
    metavar="TIME",
    help="When the first benchmark began (2026-11-01T12:00, UTC), if the files contain no time; each later benchmark "
    "begins when the previous one ended.",
)
def command(files: tuple[Path, ...], out: Path, title: str, blocks: int, started: str | None) -> None:
    """Import FILES that pgbench, sysbench, HammerDB, BenchBase, hyperfine, k6 or JMeter wrote.

    The program is recognised by the content of the files. Several files are repetitions of one benchmark and become one
    run. Operations that were timed one by one (pgbench --log, hyperfine, JMeter) are kept individually; if a file has
    only sums, each interval or file becomes a block. `compare`, `trend`, `report`, `stats` and `sql` read the run.

    BenchBase, JMeter, HammerDB, and pgbench's logs contain the time of the benchmark. Other files are dated by their
    modification time unless --started is given; `trend` puts the runs in this order.

    If a file is no repetition of the first, or cannot be read, this is an error and nothing is written. Exit 2 also if
    lines were left out.

    \b
    pgbench -P 1 -T 60 shop > before.txt
    dbdyno runs import before.txt --out runs/before
    dbdyno compare runs/before runs/after
    dbdyno trend runs/before
    """
    from dbdyno.imports.contents import FILE
    from dbdyno.imports.readers import read_file
    from dbdyno.imports.write import set_start, write_run

    if (out / "manifest.json").exists():
        raise Error("already contains a run", where=str(out), next_step="name another folder with --out")
    contents = [(str(file), read_file(file)) for file in files]
    if started is not None:
        set_start(contents, _moment_ns(started))
    run = write_run(contents, out.absolute(), title=title, blocks=blocks)
    count = run.measured_blocks()
    kept = "single operations" if contents[0][1].timed else "sums"
    click.echo(f"{out}: {kept} of {contents[0][1].program} in {count:,} block{'' if count == 1 else 's'}", err=True)
    unread = [(name, one.unread) for name, one in contents if one.unread]
    for name, lines in unread:
        first = ", ".join(map(str, lines[:SHOWN])) + (" ..." if len(lines) > SHOWN else "")
        click.echo(f"dbdyno: {name}: {len(lines):,} lines could not be read and were left out: {first}", err=True)
    if run.manifest.dated_by == FILE:
        date = run.manifest.started_at[:16].replace("T", " ")
        click.echo(
            f"the output contains no date: the run has the date of its file, {date} UTC; "
            f"set another with --started TIME",
            err=True,
        )
    click.echo(f"next: dbdyno report {out}", err=True)
    if unread:
        raise click.exceptions.Exit(2)


def _moment_ns(text: str) -> int:
    from dbdyno.trace.units import moment_ns

    found = moment_ns(text, "--started")
    if found < 0:
        raise click.BadParameter(f"{text} is before 1970", param_hint="--started")
    return found
