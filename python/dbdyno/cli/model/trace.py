"""`dbdyno model trace`: a modelled run as Oracle trace files."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import ModelError
from dbdyno.cli.output import folder_option


@click.command("trace")
@click.argument("run_name", metavar="RUN")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder for the trace files.",
)
@folder_option
def command(run_name: str, out: Path, folder: Path) -> None:
    """Write the waits and calls of the modelled RUN as Oracle trace files (event 10046) into DIR.

    One file for each arm and session; the log writer and the database writer have files of their
    own. `dbdyno trace` reads them back to the same waits, counted in whole microseconds.

    \b
    dbdyno model trace last --out traces/
    dbdyno trace profile traces/ --by module,event
    """
    from dbdyno.evidence import find_run
    from dbdyno.model.trace_write import write_model_trace

    run = find_run(run_name, folder)
    if out.exists() and any(out.iterdir()):
        raise ModelError("is not empty", where=str(out), next_step="choose an empty or a new folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    for file in write_model_trace(run, out):
        click.echo(f"{file.path}: {file.records} records")
