"""`dbdyno cells skew`: which cells, disks or flash modules differ from their siblings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.limits import Number
from dbdyno.cli.cells.options import mask_option
from dbdyno.cli.output import Output, folder_option, form_of, show_rows
from dbdyno.cli.pages import FORMATS, page_options, show_page
from dbdyno.cli.parameters import option_with_default

if TYPE_CHECKING:
    from dbdyno.judge.cells_skew import Sibling


@click.command()
@click.argument("name", metavar="RUN")
@mask_option
@option_with_default(
    "--threshold",
    type=Number(0.01, 10),
    default=0.25,
    help="The smallest relative difference that matters, such as 0.25 for 25 %.",
)
@click.option("--all", "everything", is_flag=True, help="Also show siblings that do not differ.")
@folder_option
@page_options
def command(
    name: str,
    mask: str | None,
    threshold: float,
    everything: bool,
    folder: Path,
    output: Output,
) -> None:
    """Find cells, disks or flash modules of a recording that differ from their siblings.

    Rates and latencies are compared with the siblings' median round by round, all tests under one false-discovery
    control. Exit 1 if any of them differs.

    \b
    dbdyno cells record -H @cell_group --for 15min --out rec
    dbdyno cells skew rec
    """
    from dbdyno.cells.collect import pattern_of
    from dbdyno.cells.series import open_series
    from dbdyno.evidence.run import find_run
    from dbdyno.judge.cells_skew import ROUNDS_LEAST, skew_page

    kind = form_of(output, FORMATS)
    pattern = pattern_of(mask)
    with open_series(find_run(name, folder)) as found:
        page = skew_page(found.siblings(), found.intervals, threshold=threshold)
    rows = [row for row in page["rows"] if pattern is None or pattern.fullmatch(row["metric"])]
    different = [row for row in rows if row["differs"]]
    if kind == "html":
        shown = rows if everything else different
        show_page({**page, "rows": shown, "facts": {"title": name}}, output.as_form(kind))
    elif kind == "json":
        text = json.dumps({**page, "rows": rows}, indent=1) + "\n"
        output.echo(text)
    elif kind in ("csv", "jsonl"):
        show_rows(rows if everything else different, output.as_form(kind))
    elif rows if everything else different:
        show_rows([_line(row) for row in (rows if everything else different)], output.as_form("table"))
    if not page["enough"]:
        click.echo(
            f"dbdyno: {page['rounds']} interval(s) are recorded; {ROUNDS_LEAST} are needed to test anything", err=True
        )
        click.echo("  next: record for longer: dbdyno cells record --for 15min", err=True)
    else:
        click.echo(
            f"{len(different)} of {page['tested']} siblings differ by more than "
            f"{threshold:.0%} (false discoveries held to 5 %)",
            err=True,
        )
    if different:
        raise click.exceptions.Exit(1)


def _line(row: Sibling) -> dict[str, str]:
    return {
        "metric": str(row["metric"]),
        "siblings": f"{row['n_siblings']} {row['siblings']}",
        "which": str(row["name"]),
        "times the median": f"{row['ratio']:.2f}",
        "95 %": f"{row['low']:.2f} to {row['high']:.2f}",
        "rounds": str(row["rounds"]),
        "q": f"{row['q']:.2g}",
        "": "differs" if row["differs"] else "",
    }
