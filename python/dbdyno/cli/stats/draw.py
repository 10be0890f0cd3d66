"""Figures of `dbdyno stats plot` as text, for a terminal or a pipe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 64, 20
SHADES = " ·:-=+*#%@"
MARKS = "ox+*#%@&"


def number(value: float) -> str:
    """Return a number short enough for an axis."""
    return f"{value:.4g}"


def bars(groups: Sequence[Mapping[str, Any]], width: int = 40) -> str:
    """Return histograms as text: one line with a bar per bucket and group."""
    most = max((share for g in groups for *_, share in g["steps"]), default=0.0) or 1.0
    lines = []
    for at, (low, high, _) in enumerate(groups[0]["steps"] if groups else []):
        for place, group in enumerate(groups):
            share = group["steps"][at][2]
            bar = "█" * round(width * share / most)
            span = f"{number(low):>10} {number(high):>10}" if place == 0 else " " * 21
            name = f"{group['name'][:16]:<16} " if len(groups) > 1 else ""
            lines.append(f"{span} {name}{100 * share:8.3g} % {bar}".rstrip())
    return "\n".join(lines)


class Grid:
    """A grid of characters with two axes, each linear or logarithmic."""

    def __init__(self, x: Sequence[float], y: Sequence[float], log_x: bool, log_y: bool) -> None:
        self.logs = (log_x, log_y)
        self.ranges = (self._range(x, log_x), self._range(y, log_y))
        self.shown = (tuple(x), tuple(y))
        self.field = [[" "] * WIDTH for _ in range(HEIGHT)]
        self.counts = [[0] * WIDTH for _ in range(HEIGHT)]

    @staticmethod
    def _range(ends: Sequence[float], log: bool) -> tuple[float, float]:
        low, high = (math.log10(end) if log else end for end in ends)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def cell(self, x: float, y: float) -> tuple[int, int] | None:
        """Return row and column of the cell that contains a point, or None if the point is outside."""
        places = []
        for value, log, (low, high) in zip((x, y), self.logs, self.ranges, strict=True):
            if log and value <= 0:
                return None
            places.append(((math.log10(value) if log else value) - low) / (high - low))
        if not all(-1e-9 <= place <= 1 + 1e-9 for place in places):
            return None
        column, row = (
            min(int(places[0] * WIDTH), WIDTH - 1),
            min(int(places[1] * HEIGHT), HEIGHT - 1),
        )
        return HEIGHT - 1 - max(row, 0), max(column, 0)

    def count(self, x: float, y: float, times: int = 1) -> None:
        """Add `times` to the count of the cell that contains a point."""
        place = self.cell(x, y)
        if place:
            self.counts[place[0]][place[1]] += times

    def shade(self) -> None:
        """Draw each cell's count as a character whose darkness grows with the logarithm of the count."""
        most = max(max(row) for row in self.counts)
        for row, counts in zip(self.field, self.counts, strict=True):
            for at, count in enumerate(counts):
                if count:
                    share = math.log1p(count) / math.log1p(most)
                    row[at] = SHADES[max(1, round(share * (len(SHADES) - 1)))]

    def mark(self, points: Sequence[Sequence[float]], sign: str) -> None:
        """Put a character at each point."""
        for point in points:
            place = self.cell(point[0], point[1])
            if place:
                self.field[place[0]][place[1]] = sign

    def text(self, x: str, y: str) -> str:
        """Return the grid as text, with its axes."""
        (left, right), (low, high) = self.shown
        ends = {0: number(high), HEIGHT - 1: number(low)}
        lines = [f"{y}{' (log)' if self.logs[1] else ''}"]
        lines += [f"{ends.get(at, ''):>10} │{''.join(row).rstrip()}" for at, row in enumerate(self.field)]
        lines.append(" " * 11 + "└" + "─" * WIDTH)
        name = f"{x}{' (log)' if self.logs[0] else ''}"
        foot = f"{number(left)}{name:^{WIDTH - len(number(left)) - len(number(right))}}{number(right)}"
        return "\n".join([*lines, " " * 12 + foot])


def scatter(model: Mapping[str, Any], x: str, y: str) -> str:
    """Return the scatter plot of two columns as text."""
    grid = Grid(model["x_range"], model["y_range"], model["log_x"], model["log_y"])
    for a, b in model["points"]:
        grid.count(a, b)
    for x0, x1, y0, y1, count in model["cells"]:
        middle = [
            math.sqrt(low * high) if log else (low + high) / 2
            for low, high, log in ((x0, x1, model["log_x"]), (y0, y1, model["log_y"]))
        ]
        grid.count(middle[0], middle[1], count)
    grid.shade()
    return grid.text(x, y)


def densities(model: Mapping[str, Any], column: str) -> str:
    """Return the density curves as text, each drawn with a different character."""
    points = [point for group in model["groups"] for point in group["points"]]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    grid = Grid((min(xs), max(xs)), (0.0, max(ys)), model["log"], False)
    for at, group in enumerate(model["groups"]):
        grid.mark([p for p in group["points"] if p[1] > max(ys) * 0.01], MARKS[at % len(MARKS)])
    return _with_key(grid.text(column, "density"), [g["name"] for g in model["groups"]])


def ranks(model: Mapping[str, Any], column: str) -> str:
    """Return a plot of the largest values by rank, as text."""
    points = model["points"]
    values = [point[1] for point in points]
    last = max(len(points), 2)
    grid = Grid((1, last), (min(values), max(values)), True, model["log"])
    for at, name in enumerate(model["groups"]):
        grid.mark([p for p in points if p[2] == name], MARKS[at % len(MARKS)])
    return _with_key(grid.text("rank", column), list(model["groups"]))


def draw_scaling(model: Mapping[str, Any], x: str, y: str) -> str:
    """Return a plot of the points and the fitted scaling law, as text."""
    both = [*model["points"], *model["curve"]]
    grid = Grid((0, max(p[0] for p in both)), (0, max(p[1] for p in both)), False, False)
    grid.mark(model["curve"], "·")
    grid.mark(model["points"], "o")
    return grid.text(x, y)


def _with_key(text: str, names: Sequence[str]) -> str:
    if len(names) < 2:
        return text
    key = "  ".join(f"{MARKS[at % len(MARKS)]} {name}" for at, name in enumerate(names))
    return f"{key}\n{text}"
