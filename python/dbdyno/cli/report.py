"""`dbdyno report`: render a run's report again."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import folder_option
from dbdyno.evidence import find_run


@click.command("report")
@click.argument("run_name", metavar="RUN")
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The HTML file (default: report.html in the run's folder).",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each figure as PNG and SVG into this folder.",
)
@folder_option
def command(run_name: str, output: Path | None, figures: Path | None, folder: Path) -> None:
    """Render the report of RUN (a name, its end, a path, or 'last') from its evidence."""
    from dbdyno.report.figures import write_figures
    from dbdyno.report.html import write_html
    from dbdyno.study.analyse import analyse

    run = find_run(run_name, folder)
    analysis = analyse(run)
    if figures is not None:
        for path in write_figures(analysis, figures):
            click.echo(str(path))
    if output is not None or figures is None:
        place = output or run.path / "report.html"
        write_html(analysis, place)
        click.echo(str(place))
