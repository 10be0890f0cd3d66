"""`dbdyno results push`: keep the results of runs."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import folder_option
from dbdyno.cli.results.options import remote_option


@click.command("push")
@click.argument("place", metavar="PLACE")
@click.argument("names", metavar="[RUN]...", nargs=-1)
@folder_option
@remote_option
@click.option(
    "--ran-on",
    "machine",
    metavar="NAME",
    help="Name of the machine on which the runs were made (default: derived from this machine's hardware).",
)
@click.option(
    "--commit",
    metavar="NAME",
    help="The commit that was measured (default: the commit that is checked out here, if there is one).",
)
def command(
    place: str, names: tuple[str, ...], folder: Path, remote: str | None, machine: str | None, commit: str | None
) -> None:
    """Keep the results of runs in PLACE; by default those of the last run.

    A result has the plan, the machine, the verdict, and the value of each arm and metric in each block: a few KB.
    Results that are already there stay unchanged.

    \b
    dbdyno results push results/ last
    dbdyno results push branch:performance --remote origin
    """
    from dbdyno.builds.bisect.commits import GitError, commit_of
    from dbdyno.builds.results.machine import this_machine
    from dbdyno.builds.results.place import place_of, push
    from dbdyno.evidence.run import find_run
    from dbdyno.study.analysis.measured.result_file import result_of

    to, here = place_of(place, remote), this_machine(machine)
    if commit is None:
        try:
            commit = commit_of(Path(), "HEAD")
        except GitError:
            commit = ""
    runs = [find_run(name, folder) for name in names or ("last",)]
    added = push(to, [result_of(run, here, commit) for run in runs], f"results of {', '.join(run.id for run in runs)}")
    for name in added:
        click.echo(name)
    click.echo(f"{len(added)} of {len(runs)} results added to {place}, machine {here['name']}", err=True)
