"""Which room of the package may import which, and the map that ARCHITECTURE.md shows of it.

python tests/manners/arrows.py     # prints the map, to be put between the marks in ARCHITECTURE.md
"""

from __future__ import annotations

MAY_IMPORT: dict[str, set[str]] = {
    "evidence": set(),
    "stats": set(),
    "bench": {"evidence", "cells", "flow", "model"},
    "trace": {"evidence"},
    "model": {"evidence"},
    "move": {"evidence", "bench"},
    "wide": {"evidence", "bench", "move"},
    "flow": {"evidence"},
    "snapshot": {"evidence", "bench"},
    "cells": {"evidence"},
    "judge": {"evidence", "stats", "snapshot", "cells"},
    "advise": {"evidence", "stats", "bench", "trace", "snapshot", "cells", "model", "judge"},
    "study": {"evidence", "stats", "bench", "trace", "model", "cells"},
    "pages": set(),
    "report": {"pages"},
}
"""What a room may import beside itself and what is for everybody."""
EVERYBODY = {"_core", "base", "page"}
VALUES = {
    "bench": {
        "study.plan.network",
        "study.plan.plan",
        "study.plan.replayed",
        "study.plan.schedule",
        "study.plan.typed",
        "study.plan.workloads",
    },
    "trace": {"stats.quantiles"},
}
"""What a room may take of another that it does not stand on: values that know nothing of who runs them, functions of
numbers."""
BEGIN, END = "<!-- rooms: made by tests/manners/arrows.py -->", "<!-- end of rooms -->"


def layers() -> list[list[str]]:
    """The rooms from those that everything stands on up: each stands on rooms of the layers before it."""
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
    """The map as text, the command line on top."""
    lines = ["cli".ljust(10) + "imports every room"]
    for layer in reversed(layers()):
        lines.append("-" * 60)
        for room in layer:
            allowed = ", ".join(sorted(MAY_IMPORT[room]))
            lines.append(f"{room:<10}" + (f"imports {allowed}" if allowed else "imports no other room"))
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    print(f"{BEGIN}\n```\n{diagram()}\n```\n{END}")
