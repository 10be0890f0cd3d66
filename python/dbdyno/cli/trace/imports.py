"""`dbdyno trace import`: traces into evidence."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dbdyno.base.errors import TraceError
from dbdyno.cli.output import share_option
from dbdyno.cli.trace.options import (
    end_with,
    files_argument,
    options_of,
    progress,
    reading_options,
    tell_refused,
)
from dbdyno.evidence.manifest import Section


@click.command("import")
@files_argument
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="Run folder to create.",
)
@share_option
@click.option("--title", default="", help="Title of the import.")
@click.option("--binds", is_flag=True, help="Keep bind values: they are often personal data.")
@click.option("--force", is_flag=True, help="Replace an earlier import once this one is complete.")
@reading_options
def command(files: tuple[str, ...], out: Path, title: str, binds: bool, force: bool, think_time: str) -> None:
    """Import FILES once into the run folder RUN.

    Every command on traces, and any other tool, reads its Parquet files.

    \b
    dbdyno trace import traces/ --out runs/batch
    dbdyno sql "select event, count(*) from waits group by event" --run runs/batch
    """
    from dbdyno.trace.names import torn_records
    from dbdyno.trace.source import import_traces

    options = options_of(think_time, binds=binds)
    replace = _may_replace(out, force)
    with progress() as shown:
        run, refused = import_traces(files, out, options=options, title=title, progress=shown, replace=replace)
    tell_refused(refused)
    totals = (run.manifest.totals or Section()).get("account") or {}
    counted = ", ".join(f"{totals[n]} {n}" for n in ("calls", "waits") if n in totals)
    click.echo(f"{out}" + (f": {counted}" if counted else ""))
    click.echo(f"next: dbdyno trace profile {out}", err=True)
    end_with(refused, torn=torn_records(run.manifest.unread))


def _may_replace(out: Path, force: bool) -> bool:
    """Return True if there is an earlier import that may be replaced, by option or by confirmation."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not _is_import(out):
        raise TraceError("exists, and is no imported trace", where=str(out), next_step="choose another --out")
    if not force:
        if not sys.stdin.isatty():
            raise TraceError("exists already", where=str(out), next_step="choose another --out, or add --force")
        click.confirm(f"{out} holds an earlier import; replace it?", abort=True, err=True)
    return True


def _is_import(out: Path) -> bool:
    from dbdyno.base.errors import EvidenceError
    from dbdyno.evidence import Run

    try:
        return Run.open(out).manifest.kind == "trace"
    except EvidenceError:
        return False
