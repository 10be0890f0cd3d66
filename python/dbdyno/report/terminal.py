"""The essentials for a terminal: verdict, arms, metrics drawn, blocks, warnings.

The text depends on nothing but its arguments: no environment, no terminal is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import characters, console
from dbdyno.pages import format as fmt
from dbdyno.report.flat import rows
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import (
    arms,
    correlation,
    databases,
    devices,
    errors,
    gates,
    metrics,
    race,
    verdict,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_text", "rows"]

_STYLES = {"good": "green", "bad": "red", "even": "blue", "doubt": "yellow"}
_STATIONS = 6
_STRIP = 21
_BARS = 8
_WARNINGS_MOST = 6
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
    safe = reading.read(analysis)

    def draw(page: Console) -> None:
        for part in (
            _verdict,
            _answer,
            _arms,
            _errors,
            _metrics,
            _blocks,
            _curve,
            _sweep,
            _tails,
            _race,
            _databases,
            _devices,
            _correlation,
            _traces,
            _gates,
            _foot,
        ):
            part(safe, page)

    return console.rendered(draw, width=width, color=color)


def _verdict(analysis: Analysis, page: Console) -> None:
    from rich.text import Text

    view = verdict.view(analysis)
    decision = view["decision"]
    page.print(console.plain(f"{view['title']}  {view['question']}", "dim"))
    head = Text(decision["word"].upper(), style=f"bold {_STYLES[decision['tone']]}")
    page.print(head + Text(f"  {view['headline']}" if view["headline"] else "", style="bold"))
    for sentence in view["sentences"]:
        console.item(page, "•", console.plain(sentence))
    facts = " · ".join([*view["chips"], *view["alerts"]])
    if facts:
        page.print(console.plain(facts, "dim"))


def _arms(analysis: Analysis, page: Console) -> None:
    view = arms.view(analysis)
    if view is None:
        return
    known = [name for name in _ARM_COLUMNS if name in view["columns"]]
    fitting = known[: max(2, (page.width - 28) // 11)]
    shown = [name for name in view["columns"] if name in fitting]
    table = console.table(f"Arms, {arms.OVER}", ["arm"], shown)
    for row in view["rows"]:
        cells = dict(zip(view["columns"], row["cells"], strict=True))
        name = row["name"] + (" (baseline)" if row["baseline"] else "")
        about = "\n  ".join([name, *row["changes"], *row["notes"]])
        table.add_row(console.plain(about), *(console.plain(cells[column]) for column in shown))
    page.print()
    page.print(table)


def _errors(analysis: Analysis, page: Console) -> None:
    """What failed, by arm, statement and SQLSTATE."""
    view = errors.view(analysis)
    if view is None:
        return
    table = console.table("Errors", ["arm", "statement", "SQLSTATE"], ["failed", "of", "share"])
    for row in view["rows"]:
        code = f"{row['code']} {row['meaning']}".strip()
        cells = (row["arm"]["name"], row["statement"], code, row["failed"], row["tried"], row["share"])
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print()
    page.print(table)


def _metrics(analysis: Analysis, page: Console) -> None:
    from rich.text import Text

    view = metrics.view(analysis)
    if view is None:
        return
    wide, drawn = page.width >= 108, page.width >= 72
    for given in view["tables"]:
        title = f"{given['arm']['name']} against {given['baseline']['name']}"
        table = console.table(title, ["metric"], ["before", "after", "change"] if wide else ["change"])
        for name in ("interval", "", "decision") if drawn else ("interval", "decision"):
            table.add_column(name, no_wrap=name != "decision")
        if wide:
            table.add_column("blocks", justify="right", no_wrap=True)
        for row in given["rows"]:
            numbers = ("base", "value", "change") if wide else ("change",)
            cells = [console.plain(row[name]) for name in ("label", *numbers, "interval")]
            if drawn:
                cells.append(console.plain(_drawn(row, given["reach"])))
            decision = row["decision"]
            cells.append(Text(decision["word"].lower(), style=_STYLES[decision["tone"]]))
            if wide:
                needed = f", needs {row['needed']}" if row["needed"] else ""
                cells.append(console.plain(row["blocks"] + needed))
            table.add_row(*cells)
        page.print()
        page.print(table)
    for note in view["notes"]:
        console.item(page, " ", console.plain(note, "dim"))


def _drawn(row: dict[str, Any], reach: float) -> str:
    ratio, low, high = row["ends"]
    return characters.interval(ratio, low, high, reach, _STRIP) if ratio and ratio > 0 else ""


def _blocks(analysis: Analysis, page: Console) -> None:
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
    table = console.table("Block by block", ["arm, metric"], ["from", "to"])
    table.add_column("in order of time", no_wrap=True)
    for label, ratios in shown:
        strip = characters.line(characters.squeezed(ratios, max(page.width - 60, 12)))
        table.add_row(console.plain(label), fmt.change(min(ratios)), fmt.change(max(ratios)), strip)
    page.print()
    page.print(table)


def _curve(analysis: Analysis, page: Console) -> None:
    """The medians of the bins as bars from zero, for each curve."""
    curves = reading.curves(analysis)
    names = reading.arm_names(analysis)
    for curve in curves:
        bins = [
            (x, y)
            for entry in reading.entries(curve, "bins")
            if (x := fmt.number(entry.get("redo_bytes"))) is not None
            and (y := fmt.number(entry.get("median_ns"))) is not None
        ]
        chart = characters.bars(characters.squeezed([y for _, y in bins], page.width - 14), _BARS)
        if not chart:
            continue
        whose = f", {reading.arm_name(names, curve.get('arm'))}" if len(curves) > 1 else ""
        page.print()
        page.print(console.plain(f"Median commit time by redo size{whose}", "bold"))
        labels = [fmt.duration(max(y for _, y in bins)), *[""] * (_BARS - 2), "0"]
        for label, bar in zip(labels, chart, strict=True):
            page.print(console.plain(f"{label:>9} │{bar}"))
        ends = f"{fmt.size(bins[0][0])} to {fmt.size(bins[-1][0])}, {len(bins)} bins"
        page.print(console.plain(f"{'':>9} └ {ends}", "dim"))
        if sentence := curve.get("sentence"):
            console.item(page, " ", console.plain(fmt.line(sentence)))


def _sweep(analysis: Analysis, page: Console) -> None:
    """A line of throughput for each curve of a sweep."""
    curves = reading.entries(analysis, "figures", "sweep", "curves")
    if not curves:
        return
    axis = fmt.line(reading.dig(analysis, "figures", "sweep", "x_label") or "")
    table = console.table(f"Throughput over {axis}", ["curve"], ["from", "to", "each, at the end"])
    table.add_column("in order", no_wrap=True)
    for curve in curves:
        points = reading.entries(curve, "points")
        rates = [rate for p in points if (rate := fmt.number(p.get("per_s"))) is not None]
        if rates:
            ends = fmt.rate(rates[0]), fmt.rate(rates[-1]), fmt.duration(points[-1].get("mean_ns"))
            table.add_row(console.plain(fmt.line(curve.get("name") or "")), *ends, characters.line(rates))
    page.print()
    page.print(table)


def _tails(analysis: Analysis, page: Console) -> None:
    """The slow ends of two arms; two sets of traces have them on their own page."""
    if analysis["kind"] != "traces":
        from dbdyno.report.trace.compared import print_tails

        print_tails(analysis, page)


def _race(analysis: Analysis, page: Console) -> None:
    """Who won the race of disk and flash."""
    view = race.view(analysis)
    if view is None:
        return
    names = ("races", "disk", "flash", "share", "interval", "prevented")
    heads = ["races", "disk first", "flash first", "share", view["level"], "prevented"]
    table = console.table(race.SECTION.title, ["arm"], heads)
    for row in view["rows"]:
        table.add_row(*(console.plain(cell) for cell in (row["arm"]["name"], *(row[name] for name in names))))
    page.print()
    page.print(table)


def _databases(analysis: Analysis, page: Console) -> None:
    """What each database got of a storage that several share."""
    view = databases.view(analysis)
    if view is None:
        return
    names = ("transactions", "disk", "share", "interval", "wait")
    heads = ["transactions/s", "disk I/O/s", "share", view["level"], "waiting"]
    table = console.table(databases.SECTION.title, ["arm", "database"], heads)
    for row in view["rows"]:
        cells = (row["arm"]["name"], row["database"], *(row[name] for name in names))
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print()
    page.print(table)


def _devices(analysis: Analysis, page: Console) -> None:
    """The busiest stations of a model."""
    view = devices.view(analysis)
    if view is None:
        return
    names = ("busy", "queue", "rate", "wait", "here")
    heads = ["busy", "queue", "per second", "waiting", "in all"]
    table = console.table(devices.SECTION.title, ["station, arm"], heads)
    for group in view["groups"][:_STATIONS]:
        for row in group["rows"][:_STATIONS]:
            label = f"{group['station']}, {row['arm']['name']}" if view["several"] else (group["station"])
            table.add_row(*(console.plain(cell) for cell in (label, *(row[name] for name in names))))
    page.print()
    page.print(table)
    if not view["holds"]:
        console.item(page, "!", console.plain(view["law"]))


def _correlation(analysis: Analysis, page: Console) -> None:
    """What the time of a call goes with."""
    view = correlation.view(analysis)
    if view is None:
        return
    table = console.table("Mean time of a call against", [""], ["n", "Spearman", "p adj.", "Pearson"])
    table.add_column("95 %", justify="right", no_wrap=True)
    for row in view["rows"]:
        cells = [row[name] for name in ("x", "n", "spearman", "q", "pearson", "interval")]
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print()
    page.print(table)


def _answer(analysis: Analysis, page: Console) -> None:
    """Two sets of traces: the numbers and the statements behind the verdict."""
    if analysis["kind"] == "traces":
        from dbdyno.report.trace.compared import print_answer

        print_answer(analysis, page)


def _traces(analysis: Analysis, page: Console) -> None:
    """What two sets of traces differ in, line by line."""
    if analysis["kind"] == "traces":
        from dbdyno.report.trace.compared import print_compared

        print_compared(analysis, page)


def _gates(analysis: Analysis, page: Console) -> None:
    """Checks that failed or could not be made, warnings, and what to do next; what holds is not
    worth a line here."""
    from rich.text import Text

    view = gates.view(analysis) or {"gates": [], "warnings": []}
    failed = [gate for gate in view["gates"] if gate["failed"]]
    unknown = [gate["name"] for gate in view["gates"] if gate["state"] is gates.STATES[None]]
    if failed or unknown or view["warnings"]:
        page.print()
    for gate in failed:
        effect = f" ({gate['effect']})" if gate["effect"] else ""
        console.item(page, "✗", Text(f"check failed: {gate['text']}{effect}", style="red" if effect else "yellow"))
        if gate["next"]:
            console.item(page, " ", console.plain(f"next: {gate['next']}"))
    for warning in view["warnings"][:_WARNINGS_MOST]:
        console.item(page, "!", Text(warning["text"], style="yellow"))
        if warning["next"]:
            console.item(page, " ", console.plain(f"next: {warning['next']}"))
    left = len(view["warnings"]) - _WARNINGS_MOST
    if left > 0:
        console.item(page, "!", Text(f"{left} more; --format json has all", style="yellow"))
    if unknown:
        console.item(page, "?", console.plain(f"not known: {', '.join(unknown)}", "dim"))


def _foot(analysis: Analysis, page: Console) -> None:
    run = reading.dig(analysis, "run") or {}
    known = [(name, run.get(key)) for name, key in (("run", "id"), ("dbdyno", "tool_version"))]
    words = " · ".join(f"{name} {fmt.line(value)}" for name, value in known if value is not None)
    if words:
        page.print()
        page.print(console.plain(words, "dim"))
