"""`dbdyno results`: results of runs kept as small files, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "push": ("dbdyno.cli.results.push", "Keep the results of runs in a folder or a branch."),
    "pull": ("dbdyno.cli.results.pull", "Copy results from a folder or branch into a folder."),
    "log": ("dbdyno.cli.results.log", "List the results of a folder or a branch."),
}


@click.group("results", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Results of runs, kept as small files without their evidence.

    PLACE is a folder, which anything may sync, or branch:NAME, a branch of the git repository of the current folder.
    `dbdyno trend PLAN.toml --results PLACE` follows a plan over all results.
    """
