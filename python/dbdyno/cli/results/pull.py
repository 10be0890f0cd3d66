"""`dbdyno results pull`: copy results into a folder."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.parameters import FOLDER
from dbdyno.cli.results.options import remote_option, report_refused


@click.command("pull")
@click.argument("place", metavar="PLACE")
@click.argument("folder", metavar="DIR", type=FOLDER)
@remote_option
def command(place: str, folder: Path, remote: str | None) -> None:
    """Copy the results in PLACE to the folder DIR; those that DIR already has are skipped.

    Files that are not results are reported and not copied; then the exit code is 2.

    \b
    dbdyno results pull branch:performance results/ --remote origin
    """
    from dbdyno.base.errors import EvidenceError
    from dbdyno.builds.results.branch import ResultBranch
    from dbdyno.builds.results.place import ResultFolder, place_of
    from dbdyno.study.analysis.measured.result_file import parse_result

    source = place_of(place, remote)
    if isinstance(source, ResultBranch) and remote is not None:
        source.fetch()
    kept: dict[str, bytes] = {}
    refused = []
    for name, content in source.files():
        try:
            parse_result(content, name)
            if name.count("/") != 2 or ".." in name:
                raise EvidenceError(
                    "is not a valid name of a result",
                    where=name,
                    next_step="name a folder or branch written by `dbdyno results push`",
                )
            kept[name] = content
        except EvidenceError as error:
            refused.append(error)
    added = ResultFolder(folder).add(kept, "")
    click.echo(f"{len(added)} of {len(kept)} results copied to {folder}", err=True)
    report_refused(refused)
    if refused:
        raise click.exceptions.Exit(2)
