"""`dbdyno cells show`: the metrics of every cell, side by side."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.errors import CellsError
from dbdyno.cli.cells import options as shared
from dbdyno.cli.output import FLAT, Output, form_of, show_rows
from dbdyno.cli.pages import FORMATS, page_options
from dbdyno.cli.pages import show_page as show_whole

if TYPE_CHECKING:
    from dbdyno.cells.page import ShowPage

MANY = 8
FIXED, CELL_WIDTH = 60, 15
"""Approximate width of the three columns metric, `all` and unit together, and of one cell's column, in characters."""


@click.command()
@shared.reach_options
@shared.selection_options
@shared.by_option
@click.option("-d", "--desc", is_flag=True, help="Show the description of each metric, as the cells report it.")
@click.option(
    "-c", "--cells", "per_cell", is_flag=True, help=f"Show a column per cell even for more than {MANY} cells."
)
@click.option(
    "--cell",
    "chosen",
    metavar="NAMES",
    help="Show the columns of these cells; the column `all` still covers all cells.",
)
@click.option("-s", "--sci", is_flag=True, help="Show numbers in scientific notation, such as 1.5e+07.")
@click.option("-a", "--stats", is_flag=True, help="Show minimum, maximum and mean over the cells.")
@page_options
def command(
    by: str,
    desc: bool,
    per_cell: bool,
    chosen: str | None,
    sci: bool,
    stats: bool,
    output: Output,
    **reach: Any,
) -> None:
    """Show the current metrics: value per cell, and an aggregate of all cells.

    Counters, rates and space are summed. A latency per request is weighted with the requests of its minute. For
    percentages, loads and temperatures, minimum and maximum are shown. A cell that fails is marked with ! and lacks
    only its own column. With many cells, the columns are the aggregate, the worst cell, and those of --cell.

    \b
    dbdyno cells show --hosts exa1cel01,exa1cel02 --mask 'FC_IO_RQ_R.*'
    dbdyno cells show -H @cell_group -m 'CD_IO_TM.*' --by object --desc
    """
    from dbdyno.cells.collect import collect_once
    from dbdyno.cells.show import age_words, flat_rows, show_page, table_rows

    kind = form_of(output, FORMATS)
    mask, pick = reach["mask"], shared.selection_from(reach)
    found = collect_once(shared.hosts_from(reach), shared.access_of(reach), describe=desc)
    shared.report_duplicates(found)
    pick.apply(found)
    page = show_page(found, by=by)
    if kind == "html":
        show_whole(page, output.as_form(kind))
    elif kind == "json":
        text = json.dumps(page, indent=1, ensure_ascii=False) + "\n"
        output.echo(text)
    elif kind in FLAT:
        show_rows(flat_rows(page), output.as_form(kind))
    elif page["rows"]:
        columns = _columns(page, by, per_cell, chosen, output)
        rows = table_rows(page, cells=columns, stats=stats, describe=desc, scientific=sci)
        show_rows(rows, output.as_form("table"))
        for sentence in age_words(page):
            click.echo(sentence, err=True)
    failed = shared.report_problems(found.columns)
    if not page["rows"] and not failed:
        click.echo(f"dbdyno: no metric matches {mask!r}" if mask else "dbdyno: no metric matches", err=True)
        click.echo("  next: a mask matches the whole name: 'FL_.*'", err=True)
    if failed:
        raise click.exceptions.Exit(2)


def _columns(page: ShowPage, by: str, per_cell: bool, chosen: str | None, output: Output) -> bool | Sequence[str]:
    """Return which cells get columns: the selected ones, else all if they fit, else only `all` and the worst."""
    names = [cell["name"] for cell in page["cells"]]
    if chosen:
        wanted = [name.strip() for name in chosen.split(",") if name.strip()]
        for name in wanted:
            if name not in names:
                raise CellsError(
                    f"{name!r} is not one of the cells", where="--cell", next_step=f"name one of {', '.join(names)}"
                )
        return wanted
    if by == "object" or per_cell:
        return per_cell
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() and output.path is None else 200
    most = min(MANY, max(2, (room - FIXED) // CELL_WIDTH))
    if len(names) > most:
        click.echo(f"{len(names)} cells: --cells shows a column for each, --cell {names[0]} only that cell", err=True)
    return len(names) <= most or ()
