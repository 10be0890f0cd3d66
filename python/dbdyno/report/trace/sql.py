"""Statements: the call table with exclusive figures, waits, plans, parents and children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import characters, console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base
from dbdyno.report.trace import tree, waits
from dbdyno.report.trace.head import place, statement_name
from dbdyno.report.trace.profile import seconds, share

if TYPE_CHECKING:
    from rich.console import Console

FIGURES = ("count", "elapsed", "CPU", "disk", "query", "current", "rows")
_KEYS = ("calls", "elapsed_ns", "cpu_ns", "physical_reads", "consistent_reads", "current_reads", "rows")
_LONGEST = 4000
_LINES = 5
_RELATIVES = 4
CARDS_MOST = 200
"""So many statements are printed with all that is known of them."""
COLUMNS = (
    "statement",
    "sqlid",
    "depth",
    "executions",
    "calls",
    "elapsed_ns",
    "cpu_ns",
    "wait_ns",
    "inclusive_ns",
    "physical_reads",
    "consistent_reads",
    "current_reads",
    "rows",
    "misses",
)


def view(model: Analysis) -> base.View | None:
    """The statements as text, or None without any."""
    given = reading.entries(model, "statements")
    if not given:
        return None
    anchors = {str(entry.get("statement")): f"s-{at}" for at, entry in enumerate(given, 1)}
    return {
        "figures": FIGURES,
        "statements": [_statement(at, entry, anchors) for at, entry in enumerate(given, 1)],
        "left_out": _left_out(reading.dig(model, "left_out") or {}),
    }


def _statement(at: int, entry: dict[str, Any], anchors: dict[str, str]) -> base.View:
    text = fmt.text(entry.get("text") or "")
    variants = entry.get("variants") or []
    return {
        "number": at,
        "anchor": f"s-{at}",
        "name": statement_name(entry.get("statement"), None),
        "text": text[:_LONGEST] + ("…" if len(text) > _LONGEST else ""),
        "facts": _facts(entry, len(variants)),
        "share": share(entry.get("share")),
        "width": max(0.0, min(fmt.number(entry.get("share")) or 0.0, 1.0)),
        **_steps(entry),
        "total": _step("total", entry.get("total") or {}),
        "inclusive": _inclusive(entry.get("total") or {}),
        "inside": [_wait(wait) for wait in entry.get("waits") or [] if wait.get("inside")],
        "between": [_wait(wait) for wait in entry.get("waits") or [] if not wait.get("inside")],
        "plans": [_plan(plan) for plan in entry.get("plans") or []],
        "parents": [_relative(other, anchors) for other in entry.get("parents") or []],
        "children": [_relative(other, anchors) for other in entry.get("children") or []],
        "binds": [_bound(values) for values in entry.get("binds") or []],
        "longest": waits.longest(entry),
        "tree": tree.view(entry["tree"], anchors) if entry.get("tree") else None,
    }


def _bound(given: dict[str, Any]) -> base.View:
    """The bind values of one execution: `:0 = 17`."""
    pairs = zip(given.get("numbers") or [], given.get("values") or [], strict=False)
    return {
        "elapsed": fmt.duration(given.get("elapsed_ns")),
        "place": place(given.get("file"), given.get("line")),
        "values": [f"Bind#{number} = {'NULL' if value is None else fmt.line(value, 80)}" for number, value in pairs],
    }


def _facts(entry: dict[str, Any], variants: int) -> list[str]:
    depth = entry.get("depth")
    whose = "SYS" if entry.get("user_id") == 0 else f"user {entry.get('user_id')}"
    total = entry.get("total") or {}
    per = ""
    if total.get("executions"):
        per = f"{fmt.duration(total['elapsed_ns'] / total['executions'])} per execution"
    facts = [
        f"{share(entry.get('share'))} of call time",
        per,
        f"recursive, depth {depth}" if entry.get("recursive") else "",
        f"parsed by {whose}" if entry.get("user_id") is not None else "",
        f"{fmt.count(total.get('misses'))} hard parses" if (total.get("misses") or 0) > 1 else "",
        f"{variants} texts merged" if variants > 1 else "",
        f"first at {place(*str(entry['place']).rsplit(':', 1))}" if entry.get("place") else "",
    ]
    return [fact for fact in facts if fact]


def _step(name: str, step: dict[str, Any]) -> base.View:
    cells = [seconds(step.get(key)) if key.endswith("_ns") else fmt.count(step.get(key)) for key in _KEYS]
    return {"step": name, "cells": cells}


def _steps(entry: dict[str, Any]) -> base.View:
    """The steps that the total holds, and apart those that it does not: tkprof has no line for CLOSE."""
    steps = [_step(step["step"], step) for step in entry.get("steps") or []]
    return {
        "steps": [step for step in steps if step["step"] != "close"],
        "apart": [step for step in steps if step["step"] == "close"],
    }


def _inclusive(total: dict[str, Any]) -> str:
    if not total or total.get("inclusive_ns") == total.get("elapsed_ns"):
        return ""
    return f"{seconds(total.get('inclusive_ns'))} s with the recursive statements below it"


def _wait(wait: dict[str, Any]) -> base.View:
    return {
        "event": fmt.line(wait.get("event") or ""),
        "class": fmt.line(wait.get("class") or ""),
        "count": fmt.count(wait.get("count")),
        "seconds": seconds(wait.get("total_ns")),
        "p50": fmt.duration(wait.get("p50_ns")),
        "p99": fmt.duration(wait.get("p99_ns")),
        "max": fmt.duration(wait.get("max_ns")),
    }


def _plan(plan: dict[str, Any]) -> base.View:
    seen = plan.get("seen") or 1
    name = f"plan {plan['plan_hash']}" if plan.get("plan_hash") else "plan"
    times = [fmt.number(line.get("self_time_us")) or 0.0 for line in plan.get("lines") or []]
    most = max(times, default=0.0)
    return {
        "title": f"{name}, written {seen} times" if seen > 1 else name,
        "several": seen > 1,
        "lines": [
            {
                "level": line.get("level") or 0,
                "operation": fmt.line(line.get("operation") or ""),
                "partition": fmt.line(line.get("partition") or ""),
                "rows": fmt.count(line.get("rows_first")),
                "rows_mean": fmt.significant(line.get("rows_mean")),
                "rows_max": fmt.count(line.get("rows_max")),
                "buffers": fmt.significant(line.get("cr")),
                "reads": fmt.significant(line.get("pr")),
                "starts": fmt.significant(line.get("starts")),
                "time": _micro(line.get("time_us")),
                "self": _micro(line.get("self_time_us")),
                "heat": max(own, 0.0) / most if most > 0 else 0.0,
            }
            for line, own in zip(plan.get("lines") or [], times, strict=True)
        ],
    }


def _micro(us: object) -> str:
    given = fmt.number(us)
    return fmt.NONE if given is None else fmt.duration(given * 1000)


def _relative(other: dict[str, Any], anchors: dict[str, str]) -> base.View:
    return {
        "href": f"#{anchors[key]}" if (key := str(other.get("statement"))) in anchors else "",
        "name": statement_name(other.get("statement"), other.get("text"), 120),
        "calls": fmt.count(other.get("calls")),
        "elapsed": fmt.duration(other.get("elapsed_ns")),
    }


def _left_out(left: dict[str, Any]) -> str:
    number = left.get("statements")
    if not number:
        return ""
    noun = "statement" if number == 1 else "statements"
    time = seconds(left.get("elapsed_ns"))
    return f"{fmt.count(number)} more {noun} with {time} s; --top 0 shows all"


def findings(model: Analysis) -> base.View | None:
    """Missing bind variables, or None where there are none."""
    given = reading.entries(model, "findings")
    if not given:
        return None
    return {
        "findings": [
            {
                "sentence": fmt.line(finding.get("sentence") or ""),
                "pattern": fmt.line(finding.get("force_match") or "", 300),
                "examples": [fmt.line(text or "", 300) for text in finding.get("examples") or []],
                "cost": f"{fmt.duration(finding.get('parse_ns'))} of parsing",
            }
            for finding in given
        ]
    }


def totals(model: Analysis) -> base.View | None:
    """The call table over all statements: the client's own, and the recursive ones."""
    given = reading.dig(model, "totals")
    if not given:
        return None
    titles = {"client": "The client's own statements", "recursive": "Recursive statements"}
    return {
        "figures": FIGURES,
        "tables": [
            {
                "title": f"{title}: {fmt.count(given[name].get('statements'))}",
                **_steps(given[name]),
                "total": _step("total", given[name].get("total") or {}),
            }
            for name, title in titles.items()
            if given.get(name, {}).get("statements")
        ],
    }


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per statement and one more per step of it: `step` is `total` in the first."""
    found = []
    for entry in reading.entries(model, "statements"):
        head = {name: entry.get(name) for name in ("statement", "sqlid", "depth")}
        total = entry.get("total") or {}
        for name, step in [("total", total), *((s["step"], s) for s in entry.get("steps") or [])]:
            figures = {column: step.get(column) for column in COLUMNS[3:]}
            found.append({**head, "step": name, **figures, "text": entry.get("text")})
    return found


def print_page(model: Analysis, page: Console) -> None:
    """Findings first, then the statements, then the totals."""
    _print_findings(model, page)
    shown = view(model)
    entries = (shown or {"statements": []})["statements"]
    for entry in entries[:CARDS_MOST]:
        _print_statement(entry, page)
    if len(entries) > CARDS_MOST:
        _print_brief(entries[CARDS_MOST:], page)
    if shown and shown["left_out"]:
        page.print(console.plain(shown["left_out"], "dim"))
        page.print()
    for table in (totals(model) or {"tables": []})["tables"]:
        _print_steps(table["title"], table, page)
        page.print()


def _print_brief(entries: list[base.View], page: Console) -> None:
    """A line each for statements beyond the first: what they cost, and how their text begins."""
    page.print(console.plain("A line each for the rest; JSON and HTML have all of each", "dim"))
    for entry in entries:
        cells = entry["total"]["cells"]
        head = f"{entry['number']:>6}. {entry['share']:>6}  {cells[1]:>12} s  {cells[0]:>8} calls  "
        page.out((head + fmt.line(f"{entry['name']}  {entry['text'][:200]}", max(page.width - len(head), 20))).rstrip())
    page.print()


def _print_findings(model: Analysis, page: Console) -> None:
    for finding in (findings(model) or {"findings": []})["findings"]:
        console.item(page, "!", console.plain(finding["sentence"], "yellow"))
        for example in finding["examples"][:1]:
            console.item(page, " ", console.plain(f"such as: {example}", "dim"))
        page.print()


def _print_statement(entry: base.View, page: Console) -> None:
    page.print(console.plain(f"{entry['number']}. {entry['name']}", "bold"))
    for line in folded(entry["text"], page.width - 3, _LINES):
        page.print(console.plain(f"   {line}", "cyan"))
    console.item(page, " ", console.plain(" · ".join(entry["facts"]), "dim"))
    _print_steps("", entry, page)
    if entry["inclusive"]:
        page.print(console.plain(entry["inclusive"], "dim"))
    _print_waits("Waits inside its calls, part of elapsed", entry["inside"], page)
    _print_waits("Waits between its calls, not part of elapsed", entry["between"], page)
    for plan in entry["plans"][:3]:
        _print_plan(plan, page)
    for bound in entry["binds"]:
        words = f"binds at {bound['place']}, {bound['elapsed']}: {', '.join(bound['values'])}"
        page.print(console.plain(fmt.line(words, page.width), "dim"))
    if entry["tree"]:
        page.print(console.plain("The longest execution as a tree", "dim"))
        tree.print_tree(entry["tree"], page)
    for title, others in (("Called by", entry["parents"]), ("Calls", entry["children"])):
        if others:
            page.print(console.plain(title, "dim"))
        for other in others[:_RELATIVES]:
            words = f"{other['calls']} ×, {other['elapsed']}: {other['name']}"
            page.print(console.plain(f"  {fmt.line(words, page.width - 2)}"))
    page.print()


def folded(text: str, width: int, most: int) -> list[str]:
    """A statement on at most `most` lines, white space folded, cut with an ellipsis."""
    import textwrap

    lines = textwrap.wrap(fmt.line(text), max(width, 20)) or ["text not in the trace"]
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: max(width - 2, 1)] + " …"]
    return lines


def _print_steps(title: str, entry: base.View, page: Console) -> None:
    table = console.table(title, ["call"], FIGURES, narrowest=8, padding=(0, 2, 0, 0))
    for step in entry["steps"]:
        table.add_row(*(console.plain(cell) for cell in (step["step"], *step["cells"])))
    total = entry["total"]
    table.add_row(*(console.plain(cell, "bold") for cell in (total["step"], *total["cells"])))
    for step in entry["apart"]:
        table.add_row(*(console.plain(cell, "dim") for cell in (step["step"], *step["cells"])))
    page.print(table)


def _print_waits(title: str, waits: list[base.View], page: Console) -> None:
    if not waits:
        return
    names = ["count", "seconds", "p50", "p99", "max"] if page.width >= 90 else ["count", "seconds", "p99", "max"]
    table = console.table("", [title], names, narrowest=28, padding=(0, 2, 0, 0))
    for wait in waits:
        cells = [wait["event"], *(wait[name] for name in names)]
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print(table)


def _print_plan(plan: base.View, page: Console) -> None:
    names = ["rows"]
    if plan["several"]:
        names += ["rows_mean", "rows_max"]
    names += ["buffers", "reads"] if page.width >= 90 else ["buffers"]
    names += ["time", "self"]
    titles = [name.replace("rows_", "").replace("rows", "rows") for name in names]
    table = console.table("", [plan["title"]], titles, narrowest=26, padding=(0, 2, 0, 0))
    taken = sum(2 + max(len(t), *(len(line[n]) for line in plan["lines"])) for n, t in zip(names, titles, strict=True))
    room = max(page.width - taken - 2, 26)
    deepest = max(line["level"] for line in plan["lines"])
    for line in plan["lines"]:
        style = "bold" if line["heat"] > 0.5 else ""
        words = " ".join([line["operation"], line["partition"]]).strip()
        cells = [indented(words, line["level"], deepest, room), *(line[name] for name in names)]
        table.add_row(*(console.plain(cell, style) for cell in cells))
    page.print(table)


def indented(words: str, level: int, deepest: int, room: int) -> str:
    """A step of a plan under its indent, in lines that fit: two blanks a level, one where the plan
    is deep, and beyond half the room the level as a number, so that deep steps stay readable."""
    import textwrap

    step = 2 if 2 * deepest <= room // 2 else 1
    indent = " " * (step * level)
    if len(indent) > room // 2:
        mark = f"{level}› "
        indent = " " * max(room // 2 - len(mark), 0) + mark
    lines = textwrap.wrap(words, max(room - len(indent), 12)) or [""]
    return "\n".join([indent + lines[0], *(" " * len(indent) + line for line in lines[1:])])


def heat(value: float) -> str:
    """A share of the hottest line as a small bar."""
    return characters.bar(value, 6)


SECTIONS = (
    base.Section("trace_findings", "Findings", findings),
    base.Section("trace_statements", "Statements", view),
    base.Section("trace_totals", "All statements", totals),
)
