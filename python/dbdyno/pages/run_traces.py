"""Sections that compare two sets of traces: totals, parts of the difference, lines, changed statements, tail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base import decisions
from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Row, Section, Table, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry

LINES_PRINTED, CHANGES_PRINTED, PARTS_SHOWN, PAIRS_SHOWN = 8, 5, 12, 10
_COUNTS = (
    ("executions", "executions of the client"),
    ("calls", "calls of the client"),
    ("round_trips", "round trips"),
    ("rows", "rows"),
    ("hard_parses", "hard parses"),
    ("commits", "commits"),
)
_FAMILIES = {"event": "Events", "call": "Kinds of call", "statement": "Statements"}
_SAME = "No difference that matters"
_AMOUNTS: dict[str, tuple[str, Tone]] = {"faster": ("Less", "good"), "slower": ("More", "bad")}
_FIGURES = (
    ("time_ns", "time"),
    ("gets", "buffer gets"),
    ("reads", "reads"),
    ("rows", "rows"),
    ("fetches", "fetches"),
    ("hard_parses", "hard parses"),
)
"""Figures shown for each statement, per execution of that statement."""
_SELDOM = {"fetches": "fetches", "hard_parses": "hard parses"}
"""Figures that are shown only if at least one statement's figure changed."""
_WORDS = {"plan": "other plan", "fetches": "fetch size", "gets": "buffer gets"}


def answer(model: Analysis) -> Iterator[Section]:
    """Yield the sections directly below the verdict: totals, changed statements, contributions."""
    yield from account(model)
    yield from changes(model)
    yield from contributions(model)


def compared_sections(model: Analysis) -> Iterator[Section]:
    """Yield pairs of files, every line, and the tail."""
    yield from pairs(model)
    yield from lines(model)
    yield from tails(model)


def _names(model: Analysis) -> tuple[str, str]:
    names = reading.arm_names(model)
    return names.get(0, "A"), names.get(1, "B")


def _sides(model: Analysis, unit: str, longest: int = 20) -> tuple[Column, ...]:
    one, two = (fmt.line(name, longest) for name in _names(model))
    return Column("a", one, unit), Column("b", two, unit)


def _ratio(values: Any) -> Any:
    one, two = (fmt.number(value) for value in values or [None, None])
    return two / one if one and two is not None else Cell("", "words")


def account(model: Analysis) -> Iterator[Section]:
    """Yield response time and database time, with the counts beside them."""
    given = reading.dig(model, "account")
    if not given:
        return
    per = "" if reading.basis(model) == "in all" else f", {reading.basis(model)}"
    rows = [_pair_row(f"database time{per}", given.get("database_ns"), "ns")]
    if given.get("has_response"):
        rows.insert(0, _pair_row(f"response time{per}", given.get("response_ns"), "ns"))
    sides = given.get("sides") or [{}, {}]
    if any(fmt.number(side.get("think_ns")) for side in sides):
        rows.append(_pair_row("left out: think time", [side.get("think_ns") for side in sides], "ns"))
    for name, label in _COUNTS:
        counts = [side.get(name) for side in sides]
        if any(counts):
            rows.append(_pair_row(label, counts, "count"))
    shown = (Column("name", "figure", narrowest=22), *_sides(model, "count"), Column("change", "change", "change"))
    about = "Response time includes round trips but not think time; database time excludes both."
    yield Section("account", "In two numbers", about, tables=(common.table("", shown, rows, look="slim"),))


def _pair_row(name: str, values: Any, unit: str) -> dict[str, object]:
    one, two = values or [None, None]
    return {"name": name, "a": Cell(one, unit), "b": Cell(two, unit), "change": _ratio(values)}


def contributions(model: Analysis) -> Iterator[Section]:
    """Yield the parts of the response time that contribute most to the difference."""
    given = reading.entries(model, "figures", "contributions")
    if not given:
        return
    most = max(abs(fmt.number(row.get("difference_ns")) or 0.0) for row in given) or 1.0
    shown, rest = given[:PARTS_SHOWN], given[PARTS_SHOWN:]
    rows = [_part(fmt.line(row.get("name") or ""), [row], most) for row in shown]
    if rest:
        rows.append(_part(f"{len(rest)} more", rest, most))
    whole = _part("together", given, most)
    rows.append(Row({key: value for key, value in whole.cells.items() if key != "bar"}, style="sum"))
    what = (
        Column("name", "part", narrowest=24),
        Column("a", _names(model)[0], "ns", least=72),
        Column("b", _names(model)[1], "ns", least=72),
        *columns("difference:difference bar:side:difference_drawn"),
    )
    about = (
        f"The parts of the response time, {reading.basis(model)}: CPU, the waits for each event, round trips, and "
        "unaccounted time."
    )
    table = common.table("", what, rows, look="slim")
    yield Section("contributions", f"What made the difference, {reading.basis(model)}", about, tables=(table,))


def _part(name: str, rows: list[dict[str, object]], most: float) -> Row:
    base, value, difference = (_sum(rows, key) for key in ("base_ns", "value_ns", "difference_ns"))
    bar = Cell(None if difference is None else max(min(difference / most, 1.0), -1.0))
    return Row({"name": name, "a": base, "b": value, "difference": difference, "bar": bar})


def _sum(rows: list[dict[str, object]], key: str) -> int | None:
    """Return the sum of a column, or None if a value is missing."""
    values = [fmt.number(row.get(key)) for row in rows]
    return None if None in values else round(sum(value for value in values if value is not None))


def pairs(model: Analysis) -> Iterator[Section]:
    """Yield files paired by name: the pairs that differ most, with both times of each."""
    given = reading.entries(model, "pairs")
    if not given:
        return
    has_response = (reading.dig(model, "account") or {}).get("has_response", True)
    time, label = ("response_ns", "response time") if has_response else ("database_ns", "database time")
    rows = sorted((_pair(row, time) for row in given), key=lambda row: -abs(row["difference"] or 0.0))
    shown = (
        Column("name", f"pair, {label}", narrowest=12),
        *_sides(model, "ns", 14),
        *columns("difference:difference change:change"),
    )
    left = max(len(rows) - PAIRS_SHOWN, 0)
    table = common.table("", shown, rows[:PAIRS_SHOWN], left_out=left, look="slim")
    yield Section("pairs", "Pairs that differ most", tables=(table,))


def _pair(row: Entry, time: str) -> TableRow:
    one, two = (fmt.number(value) for value in (row.get(time) or [None, None]))
    return {
        "name": fmt.line(row.get("key") or "", 60),
        "a": one,
        "b": two,
        "difference": None if one is None or two is None else two - one,
        "change": two / one if one and two else None,
    }


def lines(model: Analysis) -> Iterator[Section]:
    """Yield a table per family of lines: the mean time of one wait, call or execution, and the cost of the line."""
    given = reading.entries(model, "lines")
    if not given:
        return
    tables = []
    for family, title in _FAMILIES.items():
        rows = [_line(row, model) for row in given if row.get("family") == family]
        if rows:
            shown = _line_columns(model, title)
            tables.append(Table(title, shown, tuple(map(Row, rows)), most=LINES_PRINTED, look="metrics loose"))
    about = (
        f"Each line is judged by the time of one wait or call, and by the cost of the line {reading.basis(model)}. All "
        "lines share one false-discovery rate. Statements and kinds of call have exclusive times."
    )
    yield Section("lines", "Line by line", about, tables=tuple(tables))


def _line_columns(model: Analysis, title: str) -> tuple[Column, ...]:
    one, two = (fmt.line(name, 14) for name in _names(model))
    return (
        Column("name", title.lower(), narrowest=24),
        Column("a", one, "ns", least=104),
        Column("b", two, "ns", least=104),
        Column("each", "time of one", "words"),
        Column("each_decision", "decision", kind="verdict"),
        *columns("median:change:median:page p99:change:p99:page"),
        Column("cost", "cost", "words", where="page"),
        Column("cost_decision", "decision", kind="verdict", where="page"),
        Column("difference", reading.basis(model), "difference"),
        Column("cost_decision_too", "", kind="verdict", where="text", least=64),
    )


def _line(row: Mapping[str, Any], model: Analysis) -> TableRow:
    one, two = row.get("sides") or [{}, {}]
    metrics = {metric.get("metric"): metric for metric in row.get("metrics") or []}
    only = row.get("only_in")
    alone = f"only in {_names(model)[only]}" if isinstance(only, int) else ""
    each, each_decision = _change_cells(metrics.get("mean"), is_length=True)
    cost, cost_decision = _change_cells(metrics.get("per_execution"), is_length=False)
    return {
        "name": Cell(
            fmt.line(row.get("name") or "no statement"),
            notes=(alone,) if alone else (),
            code=fmt.line(row.get("text") or "", 160),
        ),
        "a": Cell(one.get("mean_ns"), notes=(f"{fmt.count(one.get('count'))} ×",)),
        "b": Cell(two.get("mean_ns"), notes=(f"{fmt.count(two.get('count'))} ×",)),
        "each": each,
        "each_decision": each_decision,
        "median": (metrics.get("p50") or {}).get("ratio"),
        "p99": (metrics.get("p99") or {}).get("ratio"),
        "cost": cost,
        "cost_decision": cost_decision,
        "difference": row.get("difference_ns"),
        "cost_decision_too": cost_decision,
    }


def _change_cells(metric: dict[str, object] | None, *, is_length: bool) -> tuple[Cell, Cell]:
    """Return cells with a metric's change, its interval and its decision; amounts use the words `more` and `less`."""
    if metric is None:
        return Cell("", "words"), Cell("")
    known = decisions.decision_named(metric.get("decision"))
    word: str = known.word
    tone: Tone = known.tone
    if not is_length:
        word, tone = _AMOUNTS.get(str(metric.get("decision")), (word, tone))
    interval = fmt.interval(metric.get("low"), metric.get("high"))
    return Cell(fmt.change(metric.get("ratio")), notes=(interval,)), Cell("Same" if word == _SAME else word, tone=tone)


def changes(model: Analysis) -> Iterator[Section]:
    """Yield the statements that changed: what changed, and their figures per execution in both sets."""
    given = reading.entries(model, "changes")
    if not given:
        return
    changed = {name for row in given for name in row.get("what") or []}
    figures = [pair for pair in _FIGURES if pair[0] not in _SELDOM or _SELDOM[pair[0]] in changed]
    parts = tuple(_statement_section(row, model, figures, at) for at, row in enumerate(given))
    about = (
        "Figures are per execution of the statement, without its recursive statements; the difference is "
        f"{reading.basis(model)}."
    )
    yield Section("changes", "Statements that changed, figures per execution of each", about, parts=parts)


def _statement_section(row: Mapping[str, Any], model: Analysis, figures: list[tuple[str, str]], at: int) -> Section:
    sides, names = row.get("sides") or [None, None], _names(model)
    only = next((names[side] for side in (0, 1) if sides[1 - side] is None), "")
    what = [_WORDS.get(name, fmt.line(name)) for name in row.get("what") or []]
    words = f"only in {only}" if only else ", ".join(what) or "the same"
    is_plan = "plan" in (row.get("what") or [])
    shown = (
        Column("in", "in", narrowest=10),
        *columns("executions:count"),
        *(
            Column(name, label, "ns" if name.endswith("_ns") else "number3", least=0 if place < 2 else 76)
            for place, (name, label) in enumerate(figures)
        ),
        Column("plan", "plan", where="page"),
    )
    rows = [
        {
            "in": fmt.line(name, 16),
            "executions": (side or {}).get("executions"),
            **{key: reading.dig(side, "per_execution", key) for key, _ in figures},
            "plan": ", ".join(map(fmt.line, (side or {}).get("plans") or [])),
        }
        for name, side in zip(names, sides, strict=True)
    ]
    plans = [_steps(side, name) for name, side in zip(names, sides, strict=True)] if is_plan else []
    name = fmt.line(row.get("statement") or "no statement")
    title = f"{fmt.difference(row.get('difference_ns'))} {reading.basis(model)}  {name}"
    return Section(
        f"change-{at}",
        f"{title}  {words}",
        text=fmt.line(row.get("text") or "", 200),
        sentences=_execution_sentence(row.get("time")),
        tables=(common.table("", shown, rows, look="slim"), *(plan for plan in plans if plan is not None)),
        tone="doubt" if is_plan else "",
        where="both" if at < CHANGES_PRINTED else "page",
    )


def _execution_sentence(metric: dict[str, object] | None) -> tuple[str, ...]:
    """Return a sentence with the change in the time of one execution and its decision."""
    if not metric or fmt.number(metric.get("ratio")) is None:
        return ()
    interval = fmt.interval(metric.get("low"), metric.get("high"))
    word = decisions.decision_named(metric.get("decision")).word.lower()
    return (f"Each takes {fmt.change(metric.get('ratio'))} ({interval}): {word}.",)


def _steps(side: Mapping[str, Any] | None, name: str) -> Table | None:
    """Return the steps of a plan with the figures of its first execution, or None if there is no plan."""
    rows = [
        {
            "step": Cell(fmt.line(step.get("operation") or ""), lead="  " * int(step.get("level") or 0)),
            "rows": step.get("rows_first"),
            "buffers": step.get("cr"),
        }
        for step in (side or {}).get("steps") or []
    ]
    shown = (Column("step", f"plan in {fmt.line(name, 30)}", narrowest=26), *columns("rows:count buffers:number3"))
    return common.table("", shown, rows, most=LINES_PRINTED, look="plan") if rows else None


def tails(model: Analysis) -> Iterator[Section]:
    """Yield the comparison of the slow tails of two sets of traces or two arms, separate from their other values."""
    given = reading.dig(model, "tails")
    if not given:
        return
    names = _names(model)
    rows = [
        {"name": fmt.line(row.get("name") or ""), **_quantile(row.get("values_ns") or [])}
        for row in reading.entries(given, "quantiles")
    ]
    first = Column("name", "quantile, pooled", narrowest=10)
    shown = (first, *_sides(model, "ns", 14), Column("change", "change", "change"))
    told = tuple(sentence for sentence in (_exceedance_text(given, names), _longest(given, names)) if sentence)
    table = common.table("", shown, rows, look="slim")
    yield Section("tails", "The slow tail, compared separately", sentences=told, tables=(table,))


def _quantile(values: list[Any]) -> TableRow:
    one, two = [*values, None, None][:2]
    return {"a": one, "b": two, "change": two / one if one and two else None}


def _exceedance_text(given: Mapping[str, Any], names: tuple[str, str]) -> str:
    found = reading.dig(given, "exceed") or {}
    shares = found.get("shares") or []
    if len(shares) != 2:
        return ""
    limit = fmt.duration(given.get("threshold_ns"))
    told = " and ".join(f"{fmt.percent(share)} in {name}" for share, name in zip(shares, names, strict=True))
    sentence = f"Longer than {limit}, the p99 of {names[0]}: {told}"
    if found.get("difference") is None:
        return sentence + "."
    low, high = (_points(found.get(key)) for key in ("low", "high"))
    p = fmt.probability(found.get("p"))
    equals = p if p.startswith("<") else f"= {p}"
    return f"{sentence}; the difference is {low} to {high} points over blocks, p {equals}."


def _points(share: Any) -> str:
    given = fmt.number(share)
    if given is None:
        return fmt.NONE
    return f"{'+' if given > 0 else fmt.MINUS if given < 0 else ''}{abs(given) * 100:.2g}"


def _longest(given: Mapping[str, Any], names: tuple[str, str]) -> str:
    found = reading.dig(given, "longest") or {}
    counts, expected = found.get("counts") or [], found.get("expected") or []
    if len(counts) != 2 or not found.get("most"):
        return ""
    return (
        f"Of the {fmt.count(found['most'])} longest in both together, {fmt.count(counts[1])} are from "
        f"{names[1]}; without a difference it would be about {fmt.count(round(expected[1]))}."
    )
