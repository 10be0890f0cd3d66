"""`dbdyno trace write`: write evidence as trace files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dbdyno.base.errors import TraceError
from dbdyno.cli.trace_folder import create_empty, run_to_folder
from dbdyno.evidence.run import find_run


@click.command("write")
@run_to_folder
def command(run_name: str, out: Path, folder: Path) -> None:
    """Write the imported RUN as trace files into DIR, one for each file that was read.

    Reading the files again gives the same evidence. They contain bind values only if these were imported.
    """
    from dbdyno import _core
    from dbdyno.evidence.trace_tables import require_complete

    run = find_run(run_name, folder)
    if run.manifest.kind != "trace":
        raise TraceError(
            "is not an imported trace",
            where=str(run.path),
            next_step="create one with `dbdyno trace import FILES --out RUN`",
        )
    require_complete(run)
    if str(run.manifest.to_json().get("format")).startswith("postgresql"):
        raise TraceError(
            "is a recording of PostgreSQL, which cannot be written as a trace file of Oracle",
            where=str(run.path),
            next_step=f"see it with `dbdyno trace profile {run.path}`, or read its Parquet files with another program",
        )
    create_empty(out, TraceError)
    written = json.loads(_core.write_trace(run.path, out))
    for file in written.get("files", []):
        click.echo(f"{file.get('path')}: {file.get('records')} records")
