"""`dbdyno model trace`: a modelled run as Oracle trace files."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import ModelError
from dbdyno.cli.trace_folder import create_empty, run_to_folder


@click.command("trace")
@run_to_folder
def command(run_name: str, out: Path, folder: Path) -> None:
    """Write the waits and calls of the modelled RUN as Oracle trace files (event 10046) into DIR.

    One file for each arm and session; the log writer and the database writer have separate files. When `dbdyno trace`
    reads the files, it finds the same waits, in whole microseconds.

    \b
    dbdyno model trace last --out traces/
    dbdyno trace profile traces/ --by module,event
    """
    from dbdyno.evidence.run import find_run
    from dbdyno.model.trace_write import write_model_trace

    run = find_run(run_name, folder)
    create_empty(out, ModelError)
    for file in write_model_trace(run, out):
        click.echo(f"{file.path}: {file.records} records")
