"""Sections about the recursion tree of one execution, with inclusive and exclusive time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry
from dbdyno.pages.trace_text import bar_share, place, statement_name

COLUMNS = (
    "level",
    "call",
    "line",
    "statement",
    "calls",
    "elapsed_ns",
    "self_elapsed_ns",
    "cpu_ns",
    "self_cpu_ns",
    "self_wait_ns",
    "folded",
    "rows",
    "physical_reads",
    "consistent_reads",
    "current_reads",
)
_EVENTS = 3


def sections(model: Analysis) -> Iterator[Section]:
    """Yield the tree and its figure."""
    nodes = reading.entries(model, "nodes")
    if not nodes:
        return
    facts = " · ".join(_facts(model))
    about = "The elapsed time of a line includes the lines below it; self does not."
    yield Section("trace_tree", "The tree", about, sentences=(facts,), tables=(table(model, {}),))
    yield Section("figures", "Figures", figures=common.figures(model, "tree"), where="page")


def _facts(model: Entry) -> list[str]:
    root = reading.dig(model, "root") or {}
    return [
        fmt.duration(root.get("elapsed_ns"), 4),
        f"{fmt.count(root.get('calls'))} {'call' if root.get('calls') == 1 else 'calls'}",
        f"began {fmt.clock(root.get('started_ns'), 1e3)}",
        place(root.get("file"), root.get("line")),
    ]


def table(model: Entry, places: Mapping[str, str], *, title: str = "") -> Table:
    """Return the nodes in tree order; `places` maps statements on the same page to their anchors."""
    nodes = reading.entries(model, "nodes")
    branches = fmt.branches([int(node.get("level") or 0) for node in nodes])
    rows = tuple(_row(node, branch, places) for node, branch in zip(nodes, branches, strict=True))
    shown = columns(
        "elapsed_ns:ns:elapsed self_elapsed_ns:ns:self self_cpu_ns:ns:own_CPU:90 share:share bar:bar:share_drawn:110"
        " rows:count:rows:page"
    )
    return Table(title, (Column("name", "statement and calls", narrowest=26), *shown), rows, look="tree")


def _row(node: Entry, branch: str, places: Mapping[str, str]) -> Row:
    kinds = [
        f"{fmt.line(kind)} × {fmt.count(number)}" if number > 1 else fmt.line(kind)
        for kind, number in (node.get("kinds") or {}).items()
    ]
    waits = node.get("waits") or []
    more = len(waits) - _EVENTS
    below = [
        ", ".join(kinds) or f"{fmt.count(node.get('calls'))} calls",
        *(_wait(wait) for wait in waits[:_EVENTS]),
        *([f"{more} more events"] if more > 0 else []),
    ]
    folded = f"{fmt.count(node['folded'])} smaller ones" if node.get("folded") else ""
    name = Cell(
        folded or statement_name(node.get("statement"), None),
        notes=(" · ".join(below),),
        code=fmt.line(node.get("text") or "", 400),
        href=places.get(str(node.get("statement")), ""),
        lead=branch,
    )
    return Row({**node, "name": name, "bar": Cell(bar_share(node.get("share")))})


def _wait(wait: Entry) -> str:
    count = f" × {fmt.count(wait.get('count'))}" if (wait.get("count") or 0) > 1 else ""
    return f"{fmt.line(wait.get('event') or '')}{count} {fmt.duration(wait.get('total_ns'))}"


def rows(model: Analysis) -> list[TableRow]:
    """Return one row per node."""
    return [
        {name: node.get(name) for name in COLUMNS}
        | {
            "kinds": " ".join(f"{kind}:{n}" for kind, n in (node.get("kinds") or {}).items()),
            "text": node.get("text"),
        }
        for node in reading.entries(model, "nodes")
    ]
