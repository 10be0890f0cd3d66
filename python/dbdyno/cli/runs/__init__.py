"""`dbdyno runs`: list the runs with their time and status, and import other programs' results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.json_types import TableRow
from dbdyno.base.limits import Count
from dbdyno.cli.main import LazyGroup
from dbdyno.cli.output import Output, folder_option, format_options, show_rows
from dbdyno.cli.parameters import FILE
from dbdyno.cli.runs.choose import choose_runs
from dbdyno.evidence.manifest import Section
from dbdyno.evidence.run import Run

if TYPE_CHECKING:
    from dbdyno.bench.engine.unrestored_settings import UnrestoredSettings

ROWS = {"import": "Import the output of other benchmark programs as a run."}


@click.group(
    "runs", cls=LazyGroup, package=__name__, rows=ROWS, invoke_without_command=True, subcommand_metavar="[import FILES]"
)
@click.pass_context
@folder_option
@click.option("--limit", type=Count(), metavar="N", help="Show the last N runs.")
@click.option(
    "--plan", "plan", type=FILE, help="Show only the runs of this plan, with any seed and any number of blocks."
)
@click.option(
    "--from", "since", metavar="TIME", help="Show only runs since this date (2026-11-01), or since this long ago (7d)."
)
@format_options
def command(
    ctx: click.Context,
    folder: Path,
    limit: int | None,
    plan: Path | None,
    since: str | None,
    output: Output,
) -> None:
    """List the runs, oldest first."""
    if ctx.invoked_subcommand is None:
        _list(folder, limit, plan, since, output)


def _list(folder: Path, limit: int | None, plan: Path | None, since: str | None, output: Output) -> None:
    from dbdyno.bench.postgres.leftovers import sources

    left = {one.run: one.record for one in sources(folder) if one.record.state != "held"}
    rows = []
    for run in choose_runs(folder, plan, since)[-(limit or 0) :]:
        record = left.get(run.path.resolve())
        column = {"left": _leftover_note(record) if record else ""} if left else {}
        rows.append(_row(run) | column)
    if not rows and output.form in (None, "table"):
        which = " that were asked for" if plan or since else ""
        click.echo(f"no runs{which} below {folder}/; `dbdyno run redo-size` makes one", err=True)
        return
    show_rows(rows, output, title="runs")


def _row(run: Run) -> TableRow:
    verdict = run.manifest.verdict or Section()
    return {
        "run": run.id,
        "status": run.status,
        "started": str(run.manifest.started_at)[:19],
        "blocks": _blocks(run),
        "title": run.manifest.title,
        "verdict": verdict.get("headline", ""),
    }


def _leftover_note(record: UnrestoredSettings) -> str:
    """Return what an interrupted run left changed on its server, as far as the records show."""
    word = "being put back" if record.state == "retrying" else "not put back"
    return f"{record.names} {word}"


def _blocks(run: Run) -> str:
    """Return counted and planned blocks, or "" for an imported trace, which has none."""
    if run.manifest.kind == "trace":
        return ""
    planned = run.manifest.blocks_planned if run.manifest.has("blocks_planned") else "?"
    return f"{run.measured_blocks()}/{planned}"
