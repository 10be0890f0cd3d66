"""`dbdyno runs import`: outputs of other benchmark programs as a run."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import Error
from dbdyno.cli.output import share_option

SHOWN = 5


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@share_option
@click.option("--out", required=True, metavar="RUN", type=click.Path(path_type=Path), help="Run folder to create.")
@click.option(
    "--title", default="", metavar="TEXT", help="Name of the benchmark; needed where the files do not contain one."
)
@click.option(
    "--blocks",
    type=click.IntRange(2, 10_000),
    default=20,
    show_default=True,
    help="Number of blocks into which individually timed operations are divided.",
)
def command(files: tuple[Path, ...], out: Path, title: str, blocks: int) -> None:
    """Import FILES that pgbench, sysbench, HammerDB, BenchBase, hyperfine, k6 or JMeter wrote.

    Which program it was is recognised by the content. Several files are repetitions of one benchmark and become one
    run. Operations that were timed one by one (pgbench --log, hyperfine, JMeter) are kept as such; where a file has
    sums alone, each interval or file becomes a block. `compare`, `trend`, `report`, `stats` and `sql` read the run.

    A file that is no repetition of the first, or cannot be read, is an error, and nothing is written. Exit 2 also when
    lines were left out.

    \b
    pgbench -P 1 -T 60 shop > before.txt
    dbdyno runs import before.txt --out runs/before
    dbdyno compare runs/before runs/after
    dbdyno trend runs/before
    """
    from dbdyno.imports.readers import read_file
    from dbdyno.imports.write import write_run

    if (out / "manifest.json").exists():
        raise Error("already contains a run", where=str(out), next_step="name another folder with --out")
    contents = [(str(file), read_file(file)) for file in files]
    run = write_run(contents, out.absolute(), title=title, blocks=blocks)
    count = run.measured_blocks()
    kept = "single operations" if contents[0][1].timed else "sums"
    click.echo(f"{out}: {kept} of {contents[0][1].program} in {count:,} block{'' if count == 1 else 's'}", err=True)
    unread = [(name, one.unread) for name, one in contents if one.unread]
    for name, lines in unread:
        first = ", ".join(map(str, lines[:SHOWN])) + (" ..." if len(lines) > SHOWN else "")
        click.echo(f"dbdyno: {name}: {len(lines):,} lines could not be read and were left out: {first}", err=True)
    click.echo(f"next: dbdyno report {out}", err=True)
    if unread:
        raise click.exceptions.Exit(2)
