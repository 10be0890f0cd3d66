"""The recursion tree of one execution, indented, with inclusive and exclusive time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import characters, console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.trace.head import clock, place, statement_name
from dbdyno.report.trace.profile import share

if TYPE_CHECKING:
    from rich.console import Console

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


def view(model: Analysis, anchors: dict[str, str] | None = None) -> base.View | None:
    """The nodes as text in the order of the tree, or None without any; `anchors` are the places of
    statements that are on the same page."""
    nodes = reading.entries(model, "nodes")
    if not nodes:
        return None
    root = reading.dig(model, "root") or {}
    facts = [
        f"{fmt.duration(root.get('elapsed_ns'), 4)}",
        f"{fmt.count(root.get('calls'))} {'call' if root.get('calls') == 1 else 'calls'}",
        f"began {clock(root.get('started_ns'), 1e3)}",
        place(root.get("file"), root.get("line")),
    ]
    return {
        "facts": facts,
        "nodes": [
            {**_node(node, anchors or {}), "branch": branch}
            for node, branch in zip(nodes, _branches(nodes), strict=True)
        ],
    }


def _node(node: dict[str, Any], anchors: dict[str, str]) -> base.View:
    kinds = [
        f"{fmt.line(kind)} × {fmt.count(number)}" if number > 1 else fmt.line(kind)
        for kind, number in (node.get("kinds") or {}).items()
    ]
    return {
        "level": node.get("level") or 0,
        "href": f"#{anchors[key]}" if (key := str(node.get("statement"))) in anchors else "",
        "kinds": ", ".join(kinds) or f"{fmt.count(node.get('calls'))} calls",
        "name": _folded(node) or statement_name(node.get("statement"), None),
        "text": fmt.line(node.get("text") or "", 400),
        "elapsed": fmt.duration(node.get("elapsed_ns")),
        "self": fmt.duration(node.get("self_elapsed_ns")),
        "cpu": fmt.duration(node.get("self_cpu_ns")),
        "share": share(node.get("share")),
        "width": max(0.0, min(fmt.number(node.get("share")) or 0.0, 1.0)),
        "self_share": share(node.get("self_share")),
        "rows": fmt.count(node.get("rows")),
        "waits": [_wait(wait) for wait in (node.get("waits") or [])[:_EVENTS]]
        + _more(len(node.get("waits") or []) - _EVENTS),
    }


def _folded(node: dict[str, Any]) -> str:
    return f"{fmt.count(node['folded'])} smaller ones" if node.get("folded") else ""


def _wait(wait: dict[str, Any]) -> str:
    count = f" × {fmt.count(wait.get('count'))}" if (wait.get("count") or 0) > 1 else ""
    return f"{fmt.line(wait.get('event') or '')}{count} {fmt.duration(wait.get('total_ns'))}"


def _more(number: int) -> list[str]:
    return [f"{number} more events"] if number > 0 else []


def _branches(nodes: list[dict[str, Any]]) -> list[str]:
    """The lines that lead to each node: `│  └─ `."""
    levels = [int(node.get("level") or 0) for node in nodes]
    found = []
    for at, level in enumerate(levels):
        cells = []
        for up in range(1, level + 1):
            goes_on = _has_sibling(levels, at, up)
            if up == level:
                cells.append("├─ " if goes_on else "└─ ")
            else:
                cells.append("│  " if goes_on else "   ")
        found.append("".join(cells))
    return found


def _has_sibling(levels: list[int], at: int, level: int) -> bool:
    """Whether a later node hangs at this level from the same parent."""
    for later in levels[at + 1 :]:
        if later < level:
            return False
        if later == level:
            return True
    return False


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per node."""
    return [
        {name: node.get(name) for name in COLUMNS}
        | {
            "kinds": " ".join(f"{kind}:{n}" for kind, n in (node.get("kinds") or {}).items()),
            "text": node.get("text"),
        }
        for node in reading.entries(model, "nodes")
    ]


def print_page(model: Analysis, page: Console) -> None:
    """The tree, one line per node, waits folded in below it."""
    shown = view(model)
    if shown is None:
        return
    page.print(console.plain(" · ".join(shown["facts"])))
    page.print()
    print_tree(shown, page)


def print_tree(shown: base.View, page: Console) -> None:
    """The nodes of a view, each under its branch."""
    names = ["elapsed", "self", "cpu", "share"]
    if page.width < 90:
        names.remove("cpu")
    titles = [{"cpu": "own CPU"}.get(name, name) for name in names]
    table = console.table("", [], titles, padding=(0, 2, 0, 0))
    if page.width >= 110:
        table.add_column("", no_wrap=True, min_width=8)
    table.add_column("statement and calls", overflow="fold")
    for node in shown["nodes"]:
        cells = [console.plain(node[name]) for name in names]
        if page.width >= 110:
            cells.append(console.plain(characters.bar(node["width"], 8)))
        table.add_row(
            *cells,
            _words(node, page.width - (48 if page.width >= 110 else 38 if page.width >= 90 else 28)),
        )
    page.print(table)


def fitting(branch: str, level: int, room: int) -> str:
    """The lines that lead to a node, in half the room: of a deep one the last ones, behind its level."""
    if len(branch) <= max(room // 2, 12):
        return branch
    mark = f"{level}… "
    return mark + branch[-max(room // 2 - len(mark), 3) :]


def _words(node: base.View, room: int) -> Any:
    """A node's name and text on one line under its branch, its calls and waits below it."""
    import textwrap

    from rich.text import Text

    branch = fitting(node["branch"], node["level"], room)
    text = fmt.line(node["text"], max(room - len(branch) - len(node["name"]) - 2, 12))
    words = Text(branch, style="dim")
    words.append(node["name"], style="bold")
    words.append(f"  {text}" if text else "", style="cyan")
    under = branch.replace("├─ ", "│  ").replace("└─ ", "   ")
    details = " · ".join([node["kinds"], *node["waits"]]).replace(fmt.THIN, "\xa0")
    for line in textwrap.wrap(details, max(room - len(under), 16)):
        words.append(f"\n{under}{line}", style="dim")
    return words


SECTIONS = (base.Section("trace_tree", "The tree", view), pictures.SECTION)
