"""`dbdyno snap take`: one snapshot of a live engine."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import share_option
from dbdyno.cli.snap.options import store_option, target_options
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.records import SnapshotManifest


@click.command("take")
@target_options
@share_option
@store_option
def command(dsn: str, options: Options, note: str, store: Path) -> None:
    """Take one snapshot; print its number.

    Exit 2 if some part could not be read; the rest is stored.

    \b
    dbdyno snap take --target postgresql://monitor@db1/app --note 'before batch'
    """
    from dbdyno.base.errors import SnapshotError
    from dbdyno.snapshot.engines.registry import engine_of
    from dbdyno.snapshot.store.folder import Store
    from dbdyno.snapshot.store.upkeep import tidy_when_due
    from dbdyno.snapshot.taking.take import open_collector, take

    with open_collector(dsn, options) as collector:
        made = take(collector, Store(store), engine_name=engine_of(dsn), note=note)
    click.echo(made.number)
    try:
        tidy_when_due(Store(store), made)
    except SnapshotError as error:
        click.echo(f"dbdyno: {error}", err=True)
    failed = report_problems(made.manifest)
    if failed:
        raise click.exceptions.Exit(2)


def report_problems(manifest: SnapshotManifest) -> int:
    """Print a line to stderr for each view that exists but could not be read, and return the number of these views."""
    from dbdyno.snapshot.store.folder import Snapshot

    made = Snapshot(Path(), manifest)
    lines = [
        f"{problem['view']} of {problem['database']}: {problem['problem']}"
        for problem in made.facts.get("problems") or ()
    ]
    refused = [
        name for name, record in made.views.items() if (problem := record.get("problem")) and "extension" not in problem
    ]
    known = {problem["view"] for problem in made.facts.get("problems") or ()}
    lines += [f"{n}: {made.views[n]['problem']}" for n in refused if n not in known]
    for line in lines:
        click.echo(f"dbdyno: not read: {line}", err=True)
    return len(lines)
