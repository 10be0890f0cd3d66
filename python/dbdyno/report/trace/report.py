"""A whole set of traces on one page: profile, statements with all that is theirs, longest waits.

The parts are drawn by the files of their own pages; here they are put in order and linked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.trace import profile, sql, waits
from dbdyno.report.trace.head import statement_name

if TYPE_CHECKING:
    from rich.console import Console

_WAITS_MOST = 12


def overview(model: Analysis) -> base.View | None:
    """The statements as a ranking, each a link to its own part."""
    given = reading.entries(model, "statements")
    if not given:
        return None
    return {"rows": [_ranked(at, entry) for at, entry in enumerate(given, 1)]}


def _ranked(at: int, entry: dict[str, Any]) -> base.View:
    total = entry.get("total") or {}
    executions = total.get("executions") or 0
    per = total["elapsed_ns"] / executions if executions and "elapsed_ns" in total else None
    return {
        "href": f"#s-{at}",
        "name": statement_name(entry.get("statement"), None),
        "text": fmt.line(entry.get("text") or "", 90),
        "share": profile.share(entry.get("share")),
        "width": max(0.0, min(fmt.number(entry.get("share")) or 0.0, 1.0)),
        "elapsed": profile.seconds(total.get("elapsed_ns")),
        "executions": fmt.count(executions),
        "per": fmt.duration(per),
        "rows": fmt.count(total.get("rows")),
        "gets": fmt.count((total.get("consistent_reads") or 0) + (total.get("current_reads") or 0)),
        "reads": fmt.count(total.get("physical_reads")),
        "misses": fmt.count(total.get("misses")),
    }


def rows(model: Analysis) -> list[dict[str, Any]]:
    """As `trace sql`: one row per statement and step."""
    return sql.rows(model)


def print_page(model: Analysis, page: Console) -> None:
    """From the whole to its parts: profile, statements, longest waits."""
    profile.print_page(model, page)
    page.print()
    sql.print_page(model, page)
    found = waits.longest(model)
    if found is None:
        return
    narrow = page.width < 90
    table = console.table("The longest waits", ["event"], ["elapsed"], narrowest=24, padding=(0, 2, 0, 0))
    if not narrow:
        table.add_column("statement", overflow="ellipsis", no_wrap=True)
    table.add_column("place", no_wrap=not narrow, overflow="fold")
    for row in found["rows"][:_WAITS_MOST]:
        cells = [row["event"], row["elapsed"], *([] if narrow else [row["statement"]]), row["place"]]
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print(table)


SECTIONS = (
    base.Section("trace_profile", "Where the time went", profile.view),
    pictures.SECTION,
    base.Section("trace_overview", "Statements by time", overview),
    base.Section("trace_findings", "Findings", sql.findings),
    base.Section("trace_statements", "Statements", sql.view),
    base.Section("trace_totals", "All statements", sql.totals),
    base.Section("trace_longest", "The longest waits", waits.longest),
    base.Section("trace_calls", "Database calls", profile.calls),
)
