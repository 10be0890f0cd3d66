"""`dbdyno report`: render a run's report again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.output import Output, folder_option, form_of, with_output
from dbdyno.cli.parameters import FILE, FOLDER
from dbdyno.evidence.run import find_run

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run

FORMATS = ("html", "text", "table", "markdown", "json", "csv", "jsonl", "arrow")


@click.command("report")
@click.argument("run_name", metavar="RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the report; text and table are the same. [default: html]",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write to this file; its suffix selects the format (default: report.html in the run, or in the job's ledger).",
)
@click.option("--figures", type=FOLDER, help="Write each figure as PNG and SVG into this folder.")
@folder_option
@with_output
def command(run_name: str, output: Output, figures: Path | None, folder: Path) -> None:
    """Render the report of RUN from its evidence.

    RUN is a name, the end of one, a path, or 'last': a run of a study or a plan, a recording of storage cells, a trace
    that was recorded or imported, or the folder of a move's job.

    \b
    dbdyno report last
    dbdyno report before --format text
    dbdyno report orders/
    """
    from dbdyno.ui.models import model_of

    kind = form_of(output, FORMATS, "html")
    given = _job(run_name) or find_run(run_name, folder)
    model = model_of(given, keep=True)
    if figures is not None:
        from dbdyno.report.figures import write_figures

        for path in write_figures(model, figures):
            click.echo(str(path))
        if output == Output():
            return
    if kind == "html":
        from dbdyno.report.html import write_html

        place = output.path or _place(given)
        write_html(model, place)
        click.echo(str(place))
    else:
        _show(model, output.as_form("table" if kind == "text" else kind))


def _job(name: str) -> Path | None:
    """Return the folder of a move's job, or None if the name is not that of a job."""
    from dbdyno.move.ledger.folder import INNER

    return Path(name) if (Path(name) / INNER / "manifest.json").is_file() else None


def _place(given: Run | Path) -> Path:
    """Return the path under which the page is written.

    Raises:
        EvidenceError: another user may have made the run's folder.
        MoveError: another user may have made the job's folder.
    """
    if isinstance(given, Path):
        from dbdyno.move.ledger.folder import INNER, Ledger

        Ledger.open(given).refuse_foreign()
        # Readers of a job's files skip this folder.
        return given / INNER / "report.html"
    from dbdyno.evidence.trust import refuse_foreign

    refuse_foreign(given.path)
    return given.path / "report.html"


def _show(model: Mapping[str, Any], output: Output) -> None:
    if model["kind"] in ("cells", "move", "trace", "rehearsal"):
        from dbdyno.cli.pages import show_page

        show_page(model, output)
    else:
        from dbdyno.cli.compare import show_analysis

        show_analysis(model, output)
