"""Allowed imports between the rooms of the package, and the map of them in ARCHITECTURE.md.

python tests/manners/arrows.py     # writes the map and the table of rooms into ARCHITECTURE.md
"""

from __future__ import annotations

import ast
from pathlib import Path

MAY_IMPORT: dict[str, set[str]] = {
    "evidence": set(),
    "stats": set(),
    "hosts": set(),
    "bench": {"evidence", "cells", "device", "flow", "hosts", "model"},
    "trace": {"evidence"},
    "model": {"evidence", "hosts", "stats"},
    "device": {"evidence", "model"},
    "cuts": {"bench", "device", "evidence", "hosts", "move", "snapshot"},
    "move": {"evidence", "bench"},
    "wide": {"evidence", "bench", "move"},
    "flow": {"evidence"},
    "snapshot": {"evidence", "bench"},
    "cells": {"evidence"},
    "judge": {"evidence", "stats", "snapshot", "cells"},
    "advise": {"evidence", "stats", "bench", "trace", "snapshot", "cells", "model", "judge", "study"},
    "study": {"evidence", "stats", "bench", "trace", "model", "cells", "hosts"},
    "rehearse": {"evidence", "stats", "bench", "snapshot", "move", "trace"},
    "imports": {"evidence"},
    "builds": {"evidence", "stats", "study"},
    "pages": set(),
    "report": {"pages"},
    "ui": {"advise", "evidence", "judge", "snapshot", "cells", "move", "trace", "study", "pages", "report"},
}
"""Rooms that each room can import, apart from itself and the common rooms."""
EVERYBODY = {"_core", "base", "page"}
VALUES = {
    "bench": {
        "study.plan.network",
        "study.plan.plan",
        "study.plan.replay",
        "study.plan.schedule",
        "study.plan.typed_workloads",
        "study.plan.workloads",
    },
    "trace": {"stats.quantiles"},
    "imports": {"study.plan.plan"},
}
"""Modules that a room can import although it may not import their room: plain values, and functions of numbers."""
BEGIN, END = "<!-- rooms: made by tests/manners/arrows.py -->", "<!-- end of rooms -->"
HEADS_BEGIN, HEADS_END = "<!-- heads: made by tests/manners/arrows.py -->", "<!-- end of heads -->"
ROOT = Path(__file__).resolve().parents[2]


def layers() -> list[list[str]]:
    """Return the rooms in layers, the most basic first; each room imports only rooms of earlier layers."""
    found: list[list[str]] = []
    left = dict(MAY_IMPORT)
    while left:
        below = {room for layer in found for room in layer}
        layer = sorted(room for room, allowed in left.items() if allowed <= below)
        if not layer:
            raise ValueError(f"a circle of rooms: {sorted(left)}")
        found.append(layer)
        left = {room: allowed for room, allowed in left.items() if room not in layer}
    return found


def diagram() -> str:
    """Return the map as text, with the command line at the top."""
    lines = ["cli".ljust(10) + "imports every room"]
    for layer in reversed(layers()):
        lines.append("-" * 60)
        for room in layer:
            allowed = ", ".join(sorted(MAY_IMPORT[room]))
            lines.append(f"{room:<10}" + (f"imports {allowed}" if allowed else "imports no other room"))
    return "\n".join(line.rstrip() for line in lines)


def heads() -> str:
    """Return the table of rooms and crates, each with the first sentence of its own documentation."""
    lines = ["| room | what it is for |", "|---|---|"]
    for path in sorted((ROOT / "python" / "dbdyno").glob("*/__init__.py")):
        doc = ast.get_docstring(ast.parse(path.read_text())) or ""
        lines.append(f"| `{path.parent.name}` | {_sentence(doc)} |")
    lines += ["", "| crate | what it is for |", "|---|---|"]
    for path in sorted((ROOT / "crates").glob("*/src")):
        file = next(path / name for name in ("lib.rs", "main.rs") if (path / name).exists())
        told = [line[3:].strip() for line in file.read_text().splitlines() if line.startswith("//!")]
        lines.append(f"| `{path.parent.name}` | {_sentence(chr(10).join(told))} |")
    return "\n".join(lines)


def _sentence(doc: str) -> str:
    paragraph = " ".join(doc.partition("\n\n")[0].split())
    return paragraph if ". " not in paragraph else paragraph.partition(". ")[0] + "."


def written(text: str) -> str:
    """Return the text of ARCHITECTURE.md with both generated parts as they are now."""
    for begin, end, part in ((BEGIN, END, f"```\n{diagram()}\n```"), (HEADS_BEGIN, HEADS_END, heads())):
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{part}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    map_of_rooms = ROOT / "ARCHITECTURE.md"
    map_of_rooms.write_text(written(map_of_rooms.read_text()))
