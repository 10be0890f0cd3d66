"""Drawing of a machine's layers: as a tree of text and as boxes in SVG.

The instance is at the top, with other databases on the same storage beside it. Below them are the purposes of their I/O
(redo, data, temp), and below those the parts, each above the parts that it uses. A part used by several others is drawn
once in SVG; the tree draws it once and repeats only its name at the other places. Parts that nothing uses are at the
end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import theme

if TYPE_CHECKING:
    from rich.text import Text

KIND = "machine"
_WIDTH, _LINE, _PAD, _GAP_X, _GAP_Y = 190, 15, 10, 18, 44
_STEP = _WIDTH + _GAP_X
_LETTERS = 28
# A prefix for databases, because a database may have the same name as a part.
_BESIDE = "\0"


@dataclass
class Node:
    """A box: its name, its description, and the names of the boxes below, each with a word for the connection."""

    name: str
    text: str
    below: list[tuple[str, str]] = field(default_factory=list)
    layer: int = 0
    used: bool = False


def nodes(model: Analysis) -> dict[str, Node]:
    """Return all boxes by name, with their layers (0 is the top).

    The instance (named '') and the databases beside it come first.
    """
    found = {"": Node("database instance", fmt.line(model.get("instance") or "", 120), used=True)}
    for database in reading.entries(model, "databases"):
        name = fmt.line(database.get("name") or "?")
        text = f"beside it: {fmt.line(database.get('text') or '', 120)}"
        found[f"{_BESIDE}{name}"] = Node(name, text, used=True)
    for part in reading.entries(model, "parts"):
        name = fmt.line(part.get("name") or "?")
        text = fmt.line(part.get("text") or part.get("kind") or "", 120)
        below = [(_part(over), "") for over in reading.strings(part, "over")]
        found[name] = Node(name, text, below)
    roles: dict[str, list[str]] = {}
    for root in reading.entries(model, "roots"):
        for over in reading.strings(root, "over"):
            roles.setdefault(_part(over), []).append(fmt.line(root.get("role") or ""))
    tops = _tops(found)
    for top in tops:
        found[top].below = [(name, ", ".join(words)) for name, words in roles.items()]
    for node in found.values():
        node.below = [(name, word) for name, word in node.below if name in found]
    for top in tops:
        _sink(found, top, set())
    depth = max(node.layer for node in found.values())
    for node in found.values():
        if not node.used:
            node.layer = depth + 1
    for name, node in found.items():
        if not node.used:
            _sink(found, name, set(), used=False)
    return found


def _tops(found: dict[str, Node]) -> list[str]:
    """Return the names of the instances: the one that is studied, then those beside it."""
    return [name for name in found if not name or name.startswith(_BESIDE)]


def _part(name: str) -> str:
    """Return the part that a name refers to: `disk.3` is one unit of `disk`."""
    head, dot, number = name.rpartition(".")
    return fmt.line(head if dot and number.isdigit() else name)


def _sink(found: dict[str, Node], name: str, above: set[str], *, used: bool = True) -> None:
    """Put the boxes below a box into lower layers; a cycle is ignored."""
    found[name].used = found[name].used or used
    for below, _ in found[name].below:
        if below not in above and (used or not found[below].used):
            found[below].layer = max(found[below].layer, found[name].layer + 1)
            _sink(found, below, above | {name}, used=used)


def tree(model: Analysis) -> list[str]:
    """Return the machine as lines of text."""
    found = nodes(model)
    below = {name for node in found.values() for name, _ in node.below}
    lines: list[str] = []
    shown: set[str] = set()
    for top in _tops(found):
        lines.append(_words(found[top]))
        _branch(found, top, "", lines, shown)
    idle = [name for name in found if name not in below and name not in shown]
    lines += ["", "not in use"] if idle else []
    for name in idle:
        lines.append(f"  {_words(found[name])}")
        _branch(found, name, "  ", lines, shown)
    return lines


def _branch(found: dict[str, Node], name: str, indent: str, lines: list[str], shown: set[str]) -> None:
    shown.add(name)
    below = found[name].below
    for at, (part, word) in enumerate(below):
        is_last = at == len(below) - 1
        head = f"{indent}{'└─' if is_last else '├─'} {f'{word}: ' if word else ''}"
        if part in shown:
            lines.append(f"{head}{found[part].name} (above)")
            continue
        lines.append(head + _words(found[part]))
        _branch(found, part, indent + ("   " if is_last else "│  "), lines, shown)


def _words(node: Node) -> str:
    return f"{node.name}  {node.text}" if node.text else node.name


def draw_machine(model: Analysis) -> dict[str, str]:
    """Return the machine for a page: one drawing for all widths."""
    how = "The database is at the top; each part uses those below it."
    return {"name": KIND, "title": "", "how": how, "wide": svg(model), "narrow": ""}


def lines(model: Mapping[str, Any], width: int) -> list[Text]:
    """Return the tree for a terminal."""
    from rich.text import Text

    return [Text(line, no_wrap=True) for line in tree(dict(model))]


def svg(model: Analysis) -> str:
    """Return the machine as one `<svg>` element in the theme's colours."""
    found = nodes(model)
    rows: dict[int, list[str]] = {}
    for name, node in found.items():
        rows.setdefault(node.layer, []).append(name)
    texts = {name: textwrap.wrap(node.text, _LETTERS)[:5] for name, node in found.items()}
    across = _across(found, rows)
    width = max(across.values()) + _WIDTH + 8
    places: dict[str, tuple[float, float, float]] = {}
    top = 8.0
    for layer in sorted(rows):
        row = rows[layer]
        for name in row:
            places[name] = (across[name], top, _height(texts[name]))
        top += max(_height(texts[name]) for name in row) + _GAP_Y
    height = top - _GAP_Y + 8
    drawn = [*_edges(found, places), *(_box(found[n], texts[n], places[n]) for n in found)]
    title = escape(f"{model.get('title') or 'a machine'}: its layers")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' role="img" aria-label="{title}" font-family="{theme.FONT}" font-size="11">'
        f"{''.join(drawn)}</svg>"
    )


def _across(found: dict[str, Node], rows: dict[int, list[str]]) -> dict[str, float]:
    """Return the left position of each box: below the middle of the boxes that use it, beside its neighbours."""
    across: dict[str, float] = {}
    for layer in sorted(rows):
        wanted = {}
        for at, name in enumerate(rows[layer]):
            over = [
                x - (len(found[up].below) - 1) / 2 * _STEP + place * _STEP
                for up, x in across.items()
                for place, (below, _) in enumerate(found[up].below)
                if below == name
            ]
            wanted[name] = sum(over) / len(over) if over else at * _STEP
        free = -1e9
        for name in sorted(wanted, key=lambda name: wanted[name]):
            across[name] = max(wanted[name], free)
            free = across[name] + _STEP
    left = min(across.values())
    return {name: x - left + 8 for name, x in across.items()}


def _height(lines: list[str]) -> float:
    return 2 * _PAD + _LINE * (1 + len(lines))


def _edges(found: dict[str, Node], places: dict[str, tuple[float, float, float]]) -> list[str]:
    drawn = []
    told: set[tuple[str, str]] = set()
    for name, node in found.items():
        x, y, height = places[name]
        for below, word in node.below:
            to_x, to_y, _ = places[below]
            from_x, from_y, to = x + _WIDTH / 2, y + height, to_x + _WIDTH / 2
            bend = (from_y + to_y) / 2
            drawn.append(
                f'<path d="M{from_x:.1f} {from_y:.1f}C{from_x:.1f} {bend:.1f} {to:.1f} {bend:.1f}'
                f' {to:.1f} {to_y:.1f}" fill="none" stroke="{theme.FAINT}" stroke-width="1.5"/>'
            )
            if word and (below, word) not in told:
                told.add((below, word))
                drawn.append(
                    f'<text x="{to:.1f}" y="{to_y - 6:.1f}" text-anchor="middle"'
                    f' fill="{theme.SOFT}">{escape(word)}</text>'
                )
    return drawn


def _box(node: Node, lines: list[str], place: tuple[float, float, float]) -> str:
    x, y, height = place
    stroke = theme.BASELINE if node.used else theme.FAINT
    dashes = "" if node.used else ' stroke-dasharray="4 3"'
    text = [
        f'<text x="{x + _PAD:.1f}" y="{y + _PAD + 11:.1f}" font-weight="600" font-size="12"'
        f' fill="{theme.INK}">{escape(fmt.line(node.name, 24))}</text>'
    ]
    text += [
        f'<text x="{x + _PAD:.1f}" y="{y + _PAD + 11 + _LINE * at:.1f}" fill="{theme.SOFT}">{escape(line)}</text>'
        for at, line in enumerate(lines, 1)
    ]
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{_WIDTH}" height="{height:.0f}" rx="5"'
        f' fill="{theme.PAPER}" stroke="{stroke}" stroke-width="1.5"{dashes}/>{"".join(text)}'
    )
