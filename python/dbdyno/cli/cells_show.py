"""`dbdyno cells show`: the metrics of every cell, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dbdyno.cli.cells_options import access_of, hosts_from, reach_options, tell_problems
from dbdyno.cli.output import form_of, show_rows, write_text
from dbdyno.cli.pages import FORMATS
from dbdyno.cli.pages import show_page as show_whole

MANY = 8


@click.command()
@reach_options
@click.option("-m", "--mask", metavar="REGEX", help="Only metrics whose whole name matches.")
@click.option(
    "--by",
    type=click.Choice(("cell", "object", "both")),
    default="cell",
    show_default=True,
    help="Put objects together, or cells, or keep both apart.",
)
@click.option("-d", "--desc", is_flag=True, help="The meaning of each metric, from the cells.")
@click.option(
    "-c",
    "--cells",
    "per_cell",
    is_flag=True,
    help=f"A column per cell even for more than {MANY} cells.",
)
@click.option("-s", "--sci", is_flag=True, help="Numbers as 1.5e+07.")
@click.option("-a", "--stats", is_flag=True, help="Least, most and mean of the cells.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Form of the output.",
)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file; its suffix tells the format.",
)
def command(
    mask: str | None,
    by: str,
    desc: bool,
    per_cell: bool,
    sci: bool,
    stats: bool,
    form: str | None,
    output: Path | None,
    **reach: Any,
) -> None:
    """What every cell says now: metric, value per cell, and what stands for all of them.

    Counters, rates and space are summed; a latency per request is weighted with the requests of
    its minute; percentages, loads and temperatures have a least and a most. A cell that fails is
    marked with ! and costs only its own column.

    \b
    dbdyno cells show --hosts exa1cel01,exa1cel02 --mask 'FC_IO_RQ_R.*'
    dbdyno cells show -H @cell_group -m 'CD_IO_TM.*' --by object --desc
    """
    from dbdyno.cells.collect import collect_once
    from dbdyno.cells.show import flat_rows, show_page, table_rows

    kind = form_of(form, output, FORMATS)
    found = collect_once(hosts_from(reach), access_of(reach), mask=mask, describe=desc)
    page = show_page(found, by=by)
    if kind == "html":
        show_whole(page, kind, output)
    elif kind == "json":
        text = json.dumps(page, indent=1, ensure_ascii=False) + "\n"
        write_text(output, text) if output else click.echo(text, nl=False)
    elif kind in ("csv", "jsonl"):
        show_rows(flat_rows(page), kind, output)
    elif page["rows"]:
        columns = by != "object" and (per_cell or len(page["cells"]) <= MANY)
        rows = table_rows(page, cells=columns, stats=stats, describe=desc, scientific=sci)
        show_rows(rows, "table", output)
    failed = tell_problems(found.columns)
    if not page["rows"] and not failed:
        click.echo(f"dbdyno: no metric matches {mask!r}", err=True)
        click.echo("  next: a mask matches the whole name: 'FL_.*'", err=True)
    if failed:
        raise click.exceptions.Exit(2)
