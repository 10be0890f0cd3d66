"""The essentials for a terminal: verdict, arms, metrics drawn, blocks, warnings.

The text depends on nothing but its arguments: no environment, no terminal is asked.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.report import characters, reading
from dbdyno.report import format as fmt
from dbdyno.report.flat import rows
from dbdyno.report.reading import Analysis
from dbdyno.report.sections import arms, gates, metrics, verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["render_text", "rows"]

_STYLES = {"good": "green", "bad": "red", "even": "blue", "doubt": "yellow"}
_NARROWEST = 40
_STRIP = 21
_BARS = 8
# The columns of the arms, the most telling first: as many as fit.
_ARM_COLUMNS = (
    "per second",
    "p50",
    "p99",
    "errors",
    "operations",
    "p99.9",
    "mean",
    "p90",
    "slowest",
)


def render_text(analysis: Mapping[str, Any], *, width: int, color: bool) -> str:
    """The essentials as text, `width` columns wide (40 at least), with colours only if `color`.

    Raises:
        ReportError: as `reading.read`.
    """
    from rich.console import Console

    safe = reading.read(analysis)
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, _NARROWEST),
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for part in (_verdict, _arms, _metrics, _blocks, _curve, _gates, _foot):
        part(safe, console)
    lines = out.getvalue().replace(fmt.THIN, " ").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def _verdict(analysis: Analysis, console: Console) -> None:
    from rich.text import Text

    view = verdict.view(analysis)
    decision = view["decision"]
    console.print(_plain(f"{view['title']}  {view['question']}", "dim"))
    head = Text(decision["word"].upper(), style=f"bold {_STYLES[decision['tone']]}")
    console.print(head + Text(f"  {view['headline']}" if view["headline"] else "", style="bold"))
    for sentence in view["sentences"]:
        _item(console, "•", _plain(sentence))
    facts = " · ".join([*view["chips"], *view["alerts"]])
    if facts:
        console.print(_plain(facts, "dim"))


def _arms(analysis: Analysis, console: Console) -> None:
    view = arms.view(analysis)
    if view is None:
        return
    fitting = _ARM_COLUMNS[: max(2, (console.width - 28) // 11)]
    shown = [name for name in arms.COLUMNS if name in fitting]
    table = _table("Arms", ["arm"], shown)
    for row in view["rows"]:
        cells = dict(zip(arms.COLUMNS, row["cells"], strict=True))
        name = row["name"] + (" (baseline)" if row["baseline"] else "")
        about = "\n  ".join([name, *row["changes"], *row["notes"]])
        table.add_row(_plain(about), *(_plain(cells[column]) for column in shown))
    console.print()
    console.print(table)


def _metrics(analysis: Analysis, console: Console) -> None:
    from rich.text import Text

    view = metrics.view(analysis)
    if view is None:
        return
    wide, drawn = console.width >= 108, console.width >= 72
    for given in view["tables"]:
        title = f"{given['arm']['name']} against {given['baseline']['name']}"
        table = _table(title, ["metric"], ["before", "after", "change"] if wide else ["change"])
        for name in ("interval", "", "decision") if drawn else ("interval", "decision"):
            table.add_column(name, no_wrap=name != "decision")
        if wide:
            table.add_column("blocks", justify="right", no_wrap=True)
        for row in given["rows"]:
            numbers = ("base", "value", "change") if wide else ("change",)
            cells = [_plain(row[name]) for name in ("label", *numbers, "interval")]
            if drawn:
                cells.append(_plain(_drawn(row, given["reach"])))
            decision = row["decision"]
            cells.append(Text(decision["word"].lower(), style=_STYLES[decision["tone"]]))
            if wide:
                needed = "" if row["needed"] == fmt.NONE else f", needs {row['needed']}"
                cells.append(_plain(row["blocks"] + needed))
            table.add_row(*cells)
        console.print()
        console.print(table)


def _drawn(row: dict[str, Any], reach: float) -> str:
    ratio, low, high = row["ends"]
    return characters.interval(ratio, low, high, reach, _STRIP) if ratio and ratio > 0 else ""


def _blocks(analysis: Analysis, console: Console) -> None:
    """One character per block, in the order of time."""
    names = reading.arm_names(analysis)
    shown = []
    for at, entry in enumerate(reading.entries(analysis, "figures", "blocks")):
        where = f"figures.blocks[{at}]"
        ratios = [row["ratio"] for row in reading.rows(entry, where, ("block", "at_s", "ratio"))]
        if len(ratios) > 1:
            label = f"{reading.arm_name(names, entry.get('arm'))}, {fmt.line(entry.get('metric'))}"
            shown.append((label, ratios))
    if not shown:
        return
    table = _table("Block by block", ["arm, metric"], ["from", "to"])
    table.add_column("in order of time", no_wrap=True)
    for label, ratios in shown:
        strip = characters.line(characters.squeezed(ratios, max(console.width - 60, 12)))
        table.add_row(_plain(label), fmt.change(min(ratios)), fmt.change(max(ratios)), strip)
    console.print()
    console.print(table)


def _curve(analysis: Analysis, console: Console) -> None:
    """The medians of the bins as bars from zero."""
    bins = [
        (x, y)
        for entry in reading.entries(analysis, "figures", "curve", "bins")
        if (x := fmt.number(entry.get("redo_bytes"))) is not None
        and (y := fmt.number(entry.get("median_ns"))) is not None
    ]
    chart = characters.bars(characters.squeezed([y for _, y in bins], console.width - 14), _BARS)
    if not chart:
        return
    console.print()
    console.print(_plain("Median commit time by redo size", "bold"))
    labels = [fmt.duration(max(y for _, y in bins)), *[""] * (_BARS - 2), "0"]
    for label, bar in zip(labels, chart, strict=True):
        console.print(_plain(f"{label:>9} │{bar}"))
    ends = f"{fmt.size(bins[0][0])} to {fmt.size(bins[-1][0])}, {len(bins)} bins"
    console.print(_plain(f"{'':>9} └ {ends}", "dim"))
    sentence = reading.dig(analysis, "figures", "curve", "sentence")
    if sentence:
        _item(console, " ", _plain(fmt.line(sentence)))


def _gates(analysis: Analysis, console: Console) -> None:
    """What failed and what to do next; what holds is not worth a line here."""
    from rich.text import Text

    view = gates.view(analysis) or {"gates": [], "warnings": []}
    if view["warnings"]:
        console.print()
    for warning in view["warnings"]:
        _item(console, "!", Text(warning["text"], style="yellow"))
        if warning["next"]:
            _item(console, " ", _plain(f"next: {warning['next']}"))


def _foot(analysis: Analysis, console: Console) -> None:
    run = reading.dig(analysis, "run") or {}
    known = [(name, run.get(key)) for name, key in (("run", "id"), ("dbdyno", "tool_version"))]
    words = " · ".join(f"{name} {fmt.line(value)}" for name, value in known if value is not None)
    if words:
        console.print()
        console.print(_plain(words, "dim"))


def _table(title: str, left: list[str], right: list[str]) -> Any:
    from rich.table import Table

    table = Table(title=_plain(title, "bold"), title_justify="left", box=None, pad_edge=False)
    table.header_style = "dim"
    for name in left:
        table.add_column(name, overflow="fold", min_width=15)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _item(console: Console, sign: str, words: Text | str) -> None:
    """A sign, and beside it words that wrap under themselves."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(sign, words)
    console.print(grid)


def _plain(words: str, style: str = "") -> Text:
    """Text without markup, whatever it contains."""
    from rich.text import Text

    return Text(words, style=style)
