"""Sections about statements of traces: call table with exclusive figures, waits, plans, parents, children, trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Finding, Row, Section, Table
from dbdyno.pages import common, reading, trace_tree
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry
from dbdyno.pages.trace_text import anchors, bar_share, place, statement_name
from dbdyno.pages.trace_waits import longest

Places = Mapping[str, str]
CARDS_MOST = 200
"""Maximum number of statements printed with all details."""
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
_LONGEST = 4000
_RELATIVES = 4
_STEPS = (
    "step:text:call calls:count:count elapsed_ns:seconds:elapsed cpu_ns:seconds:CPU physical_reads:count:disk"
    " consistent_reads:count:query current_reads:count:current rows:count"
)
_ABOUT = (
    "Figures are exclusive: the work of recursive statements counts for them, not for their caller. Waits inside "
    "calls are part of elapsed, waits between calls are not."
)


def sections(model: Analysis) -> Iterator[Section]:
    """Yield findings, statements and totals."""
    yield Section("trace_findings", "Findings", findings=tuple(_findings(model)))
    yield from statements(model)
    yield from totals(model)


def statements(model: Analysis) -> Iterator[Section]:
    """Yield a part for each statement; on a terminal, statements after the first `CARDS_MOST` get one line each."""
    given = reading.entries(model, "statements")
    if not given:
        return
    places = anchors(given)
    cards = tuple(_statement(at, entry, places) for at, entry in enumerate(given[:CARDS_MOST], 1))
    rest = list(enumerate(given[CARDS_MOST:], CARDS_MOST + 1))
    left = _left_out(reading.dig(model, "left_out") or {})
    yield Section(
        "trace_statements",
        "Statements",
        _ABOUT,
        parts=cards,
        rest=lambda: (_statement(at, entry, places) for at, entry in rest),
        notes=(left,) if left else (),
    )
    if len(given) > CARDS_MOST:
        rows = [_brief(at, entry) for at, entry in rest]
        shown = columns("name:text:statement share:share seconds:seconds calls:count")
        title = "One line for each other statement; JSON and HTML have the details"
        yield Section("brief", title, tables=(common.table("", shown, rows),), where="text")


def _brief(at: int, entry: Entry) -> dict[str, object]:
    total = entry.get("total") or {}
    name = statement_name(entry.get("statement"), entry.get("text"), 40)
    figures = {"seconds": total.get("elapsed_ns"), "calls": total.get("calls")}
    return {"name": f"{at}. {name}", "share": entry.get("share"), **figures}


def _statement(at: int, entry: Entry, places: Places) -> Section:
    text = fmt.text(entry.get("text") or "")
    return Section(
        f"s-{at}",
        f"{at}. {statement_name(entry.get('statement'), None)}",
        " · ".join(_facts(entry)),
        text=text[:_LONGEST] + ("…" if len(text) > _LONGEST else "") or "its text is not in the trace",
        tables=tuple(_tables(entry, places)),
        notes=tuple(_bind_values(values) for values in entry.get("binds") or []),
        parts=_tree(entry, places),
        share=bar_share(entry.get("share")),
    )


def _tables(entry: Entry, places: Places) -> Iterator[Table]:
    yield _steps("", entry, _inclusive(entry.get("total") or {}))
    waits = entry.get("waits") or []
    for title, inside in (("inside its calls, part of", True), ("between its calls, not part of", False)):
        mine = [wait for wait in waits if bool(wait.get("inside")) is inside]
        if mine:
            yield _waits(f"Waits {title} elapsed", mine)
    for at, plan in enumerate(entry.get("plans") or []):
        yield _plan(plan, "both" if at < 3 else "page")
    if entry.get("longest"):
        yield longest(entry["longest"], places, folded="Its longest waits", where="page")
    for title, name in (("Called by", "parents"), ("Calls", "children")):
        if entry.get(name):
            yield _relatives(title, entry[name], places)


def _bind_values(entry: Entry) -> str:
    """Return the bind values of one execution: `Bind#0 = 17`."""
    pairs = zip(entry.get("numbers") or [], entry.get("values") or [], strict=False)
    values = [f"Bind#{number} = {'NULL' if value is None else fmt.line(value, 80)}" for number, value in pairs]
    where = place(entry.get("file"), entry.get("line"))
    return fmt.line(f"binds at {where}, {fmt.duration(entry.get('elapsed_ns'))}: {', '.join(values)}", 600)


def _facts(entry: Entry) -> Iterator[str]:
    depth, total = entry.get("depth"), entry.get("total") or {}
    yield f"{fmt.share(entry.get('share'))} of call time"
    if total.get("executions"):
        yield f"{fmt.duration(total['elapsed_ns'] / total['executions'])} per execution"
    if entry.get("recursive"):
        yield f"recursive, depth {depth}"
    if entry.get("user_id") is not None:
        yield "parsed by SYS" if entry["user_id"] == 0 else f"parsed by user {entry['user_id']}"
    if (total.get("misses") or 0) > 1:
        yield f"{fmt.count(total.get('misses'))} hard parses"
    if len(entry.get("variants") or []) > 1:
        yield f"{len(entry['variants'])} texts merged"
    if entry.get("place"):
        yield f"first at {place(*str(entry['place']).rsplit(':', 1))}"


def _steps(title: str, entry: Entry, note: str = "") -> Table:
    """Return the call table; `close` is shown separately from the total, because tkprof has no line for CLOSE."""
    given = [Row({**step, "step": fmt.line(step.get("step") or "")}) for step in entry.get("steps") or []]
    apart = [Row(row.cells, style="dim") for row in given if row.cells["step"] == "close"]
    steps = [row for row in given if row.cells["step"] != "close"]
    total = Row({**(entry.get("total") or {}), "step": "total"}, style="sum")
    shown = columns(_STEPS)
    return Table(title, (Column("step", "call", narrowest=8), *shown[1:]), (*steps, total, *apart), note=note)


def _inclusive(total: Entry) -> str:
    if not total or total.get("inclusive_ns") == total.get("elapsed_ns"):
        return ""
    return f"{fmt.seconds(total.get('inclusive_ns'))} s with the recursive statements below it"


def _waits(title: str, waits: Sequence[Entry]) -> Table:
    shown = columns("count:count total_ns:seconds:seconds p50_ns:ns:p50:90 p99_ns:ns:p99 max_ns:ns:max")
    rows = tuple(Row({**wait, "event": fmt.line(wait.get("event") or "")}) for wait in waits)
    return Table("", (Column("event", title, narrowest=28), *shown), rows)


def _plan(plan: Entry, where: Any) -> Table:
    seen = plan.get("seen") or 1
    name = f"plan {plan['plan_hash']}" if plan.get("plan_hash") else "plan"
    lines = plan.get("lines") or []
    times = [fmt.number(line.get("self_time_us")) or 0.0 for line in lines]
    most = max(times, default=0.0)
    several = " rows_mean:number3:mean rows_max:count:max" if seen > 1 else ""
    shown = columns(
        f"rows_first:count:rows{several} cr:number3:buffers pr:number3:reads:90 starts:number3:starts:page"
        " time:ns self:ns bar:bar:self_drawn:page"
    )
    rows = [
        Row(
            {
                **line,
                "step": _step(line),
                "time": _nanoseconds(line.get("time_us")),
                "self": _nanoseconds(line.get("self_time_us")),
                "bar": Cell(max(own, 0.0) / most if most > 0 else 0.0),
            },
            tone="worst" if most > 0 and own / most > 0.5 else "",
        )
        for line, own in zip(lines, times, strict=True)
    ]
    title = f"{name}, written {seen} times" if seen > 1 else name
    return Table("", (Column("step", title, narrowest=26), *shown), tuple(rows), look="plan", where=where)


def _step(line: Entry) -> Cell:
    """Return a step of a plan with its indentation."""
    words = " ".join(fmt.line(line.get(name) or "") for name in ("operation", "partition")).strip()
    return Cell(words, lead="  " * int(line.get("level") or 0))


def _nanoseconds(us: object) -> float | None:
    given = fmt.number(us)
    return None if given is None else given * 1000


def _tree(entry: Entry, places: Places) -> tuple[Section, ...]:
    if not entry.get("tree"):
        return ()
    return (
        Section(
            "",
            "",
            tables=(trace_tree.table(entry["tree"], places, title="The longest execution as a tree"),),
            folded="Its longest execution as a tree",
        ),
    )


def _relatives(title: str, entries: Sequence[Entry], places: Places) -> Table:
    rows = [
        {
            "calls": f"{fmt.count(other.get('calls'))} ×",
            "elapsed": other.get("elapsed_ns"),
            "name": Cell(
                statement_name(other.get("statement"), other.get("text"), 60),
                "code",
                href=places.get(str(other.get("statement")), ""),
            ),
        }
        for other in entries
    ]
    shown = (Column("calls", title, narrowest=9), *columns("elapsed:ns:_"), Column("name", "", narrowest=24))
    return common.table("", shown, rows, look="slim", most=_RELATIVES)


def _left_out(entry: Entry) -> str:
    number = entry.get("statements")
    if not number:
        return ""
    noun = "statement" if number == 1 else "statements"
    return f"{fmt.count(number)} more {noun} with {fmt.seconds(entry.get('elapsed_ns'))} s; --top 0 shows all"


def _findings(model: Analysis) -> Iterator[Finding]:
    """Yield the findings about missing bind variables."""
    for given in reading.entries(model, "findings"):
        cost = f"{fmt.duration(given.get('parse_ns'))} of parsing"
        pattern = fmt.line(given.get("force_match") or "", 300)
        examples = [f"such as: {fmt.line(text or '', 300)}" for text in given.get("examples") or []]
        evidence = (*examples, *([f"{cost}: {pattern}"] if pattern else []))
        yield Finding(fmt.line(given.get("sentence") or ""), "doubt", evidence)


def totals(model: Analysis) -> Iterator[Section]:
    """Yield the call tables over all statements: one for the client's statements, one for the recursive ones."""
    given = reading.dig(model, "totals") or {}
    titles = {"client": "The client's own statements", "recursive": "Recursive statements"}
    found = tuple(
        _steps(f"{title}: {fmt.count(given[name].get('statements'))}", given[name])
        for name, title in titles.items()
        if given.get(name, {}).get("statements")
    )
    if found:
        yield Section("trace_totals", "All statements", tables=found)


def overview(model: Analysis) -> Iterator[Section]:
    """Yield the ranking of statements; each links to its own part."""
    given = reading.entries(model, "statements")
    if not given:
        return
    shown = columns(
        "name:text:statement elapsed:seconds:seconds share:share bar:bar:share_drawn executions:count each:ns"
        " rows:count gets:count reads:count misses:count:hard_parses"
    )
    about = (
        "Exclusive time: the work of recursive statements counts for them, not for their caller. Each name links to "
        "the statement's calls, plan, waits and tree."
    )
    rows = [_rank_row(at, entry) for at, entry in enumerate(given, 1)]
    table = common.table("", shown, rows, look="loose")
    yield Section("trace_overview", "Statements by time", about, tables=(table,), where="page")


def _rank_row(at: int, entry: Entry) -> dict[str, object]:
    total = entry.get("total") or {}
    executions = total.get("executions") or 0
    return {
        "name": Cell(
            statement_name(entry.get("statement"), None), href=f"#s-{at}", code=fmt.line(entry.get("text") or "", 90)
        ),
        "elapsed": total.get("elapsed_ns"),
        "share": entry.get("share"),
        "bar": Cell(bar_share(entry.get("share"))),
        "executions": executions,
        "each": total["elapsed_ns"] / executions if executions and "elapsed_ns" in total else None,
        "rows": total.get("rows"),
        "gets": (total.get("consistent_reads") or 0) + (total.get("current_reads") or 0),
        "reads": total.get("physical_reads"),
        "misses": total.get("misses"),
    }


def rows(model: Analysis) -> list[TableRow]:
    """Return, for each statement, one row with the step `total` and one row per step."""
    found = []
    for entry in reading.entries(model, "statements"):
        head = {name: entry.get(name) for name in ("statement", "sqlid", "depth")}
        steps = [("total", entry.get("total") or {}), *((s["step"], s) for s in entry.get("steps") or [])]
        for name, step in steps:
            figures = {column: step.get(column) for column in COLUMNS[3:]}
            found.append({**head, "step": name, **figures, "text": entry.get("text")})
    return found
