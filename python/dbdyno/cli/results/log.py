"""`dbdyno results log`: list kept results."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.results.options import machine_option, remote_option, report_refused
from dbdyno.evidence.manifest import Section

SHORT = 12


@click.command("log")
@click.argument("place", metavar="PLACE")
@remote_option
@machine_option
@click.option("--limit", type=Count(), metavar="N", help="Show the last N results.")
@format_options
def command(place: str, remote: str | None, machine: str | None, limit: int | None, output: Output) -> None:
    """List the results in PLACE, oldest first: run, machine, commit, verdict."""
    from dbdyno.builds.results.place import place_of, results_in

    found, refused = results_in(place_of(place, remote))
    rows = [
        {
            "started": str(run.manifest.started_at)[:19],
            "run": run.id,
            "machine": run.machine,
            "commit": run.commit[:SHORT],
            "title": run.manifest.title,
            "verdict": (run.manifest.verdict or Section()).get("headline", ""),
        }
        for run in found
        if machine in (None, run.machine)
    ][-(limit or 0) :]
    if not rows and output.form in (None, "table"):
        click.echo(f"no results in {place}; add some with `dbdyno results push`", err=True)
    else:
        show_rows(rows, output, title="results")
    report_refused(refused)
    if refused:
        raise click.exceptions.Exit(2)
