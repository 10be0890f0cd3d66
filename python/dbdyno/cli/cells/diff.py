"""`dbdyno cells diff`: activity of the cells between two collections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.cli.cells.options import by_option, mask_option
from dbdyno.cli.output import FLAT, Output, folder_option, form_of, show_rows
from dbdyno.cli.pages import FORMATS, page_options, show_page

if TYPE_CHECKING:
    from dbdyno.cells.page import CounterChange, DiffPage, FlashLog, MissingChange


@click.command()
@click.argument("before")
@click.argument("after")
@mask_option
@by_option
@click.option("--all", "everything", is_flag=True, help="Also show counters that did not change.")
@folder_option
@page_options
def command(
    before: str,
    after: str,
    mask: str | None,
    by: str,
    everything: bool,
    folder: Path,
    output: Output,
) -> None:
    """Show what happened on the cells between BEFORE and AFTER.

    It shows differences of counters, rates over each cell's own times, latencies, and which device was first in the
    flash log.

    BEFORE and AFTER are each a recording (for a run, its last round is used), or a file with output of CellCLI.

    \b
    dbdyno cells diff before.txt after.txt --mask 'FL_.*'
    """
    from dbdyno.cells.catalogue import family_words
    from dbdyno.cells.diff import collection_of, diff_page

    kind = form_of(output, FORMATS)
    sides = [collection_of(name, mask=mask, runs=folder) for name in (before, after)]
    page = diff_page(*sides, by=by)
    rows = [row for row in page["rows"] if everything or row["delta"]]
    if kind == "html":
        titled = [{**row, "family": family_words(row["metric"])} for row in page["rows"]]
        facts = {"title": f"{before} to {after}"}
        show_page({**page, "rows": titled, "facts": facts}, output.as_form(kind))
    elif kind == "json":
        text = json.dumps(page, indent=1, ensure_ascii=False) + "\n"
        output.echo(text)
    elif kind in FLAT:
        show_rows(rows, output.as_form(kind))
    else:
        _print(page, rows, output)
    for problem in page["problems"]:
        click.echo(f"dbdyno: {problem}", err=True)
    if page["problems"]:
        raise click.exceptions.Exit(2)


def _print(page: DiffPage, rows: list[CounterChange], output: Output) -> None:
    from dbdyno.cells.show import digits_text

    if rows:
        show_rows(_lines(rows), output.as_form("table"))
    elif not page["without"]:
        click.echo("nothing changed between the two")
    if page["latencies"]:
        click.echo()
        show_rows(
            [
                {
                    "latency": row["metric"],
                    "cell": row["cell"],
                    "value": digits_text(round(row["value"], 3)) if row["value"] is not None else "–",
                    "unit": row["unit"],
                    "requests": digits_text(row["requests"]),
                }
                for row in page["latencies"]
            ],
            Output("table"),
        )
    for sentence in flash_log_sentences(page["flash_log"]):
        click.echo(sentence)
    report_missing_changes(page["without"])


def _lines(rows: list[CounterChange]) -> list[dict[str, str]]:
    from dbdyno.cells.show import digits_text

    lines = [
        {
            "metric": row["metric"],
            "cell": row["cell"],
            "object": row["object"],
            "difference": digits_text(round(row["delta"], 6)),
            "per second": digits_text(round(row["per_s"], 3)) if row["per_s"] else "",
            "unit": row["unit"],
        }
        for row in rows
    ]
    shown = [key for key in lines[0] if any(line[key] for line in lines)]
    return [{key: line[key] for key in shown} for line in lines]


def report_missing_changes(entries: list[MissingChange]) -> None:
    """Print which cells have counters for which no difference can be computed, and why."""
    told: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = (entry["cell"], entry["verdict"])
        told[key] = told.get(key, 0) + 1
    for (cell, verdict), count in told.items():
        click.echo(f"{cell}: {count} counter(s) have no difference: {_WORDS[verdict]}")


_WORDS = {
    "not refreshed": "not refreshed, the cell had not collected again",
    "reset": "reset, the cell's service was restarted in between",
    "new": "seen only after",
    "gone": "seen only before",
}


def flash_log_sentences(log: FlashLog | None) -> list[str]:
    """Return the activity of the flash log as sentences."""
    if log is None:
        return []
    words = [
        "",
        f"Flash log: {log['writes']:,.0f} redo writes; disk first in {log['disk_first']:,.0f}, "
        f"flash first in {log['flash_first']:,.0f}: {100 * log['flash_share']:.2f} % "
        f"(95 % CI {100 * log['flash_share_low']:.2f} to {100 * log['flash_share_high']:.2f}, if "
        "writes were independent).",
    ]
    if log["prevented_outliers"] is not None:
        words.append(
            f"Outliers prevented: {log['prevented_outliers']:,.0f}"
            + (f"; not prevented: {log['actual_outliers']:,.0f}" if log["actual_outliers"] is not None else "")
            + "."
        )
    if log["passed_by"]:
        reasons = ", ".join(f"{why} {n:,.0f}" for why, n in log["passed_by"].items())
        words.append(f"Bypassed the flash log: {reasons}.")
    if not log["identity_holds"]:
        words.append("Disk first + flash first differs from FL_IO_W: the counters were read at different moments.")
    return words
