"""Builder of the page about a trend: the last change first, then each arm over its runs."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.trend_run import TrendRun
from dbdyno.page import Cell, Column, Page, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, with_noun
from dbdyno.pages.reading import Analysis, Entry


def page(model: Analysis) -> Page:
    """Return the page about a trend."""
    runs = reading.list_of(TrendRun, model, "runs")
    alerts = with_noun(len(reading.entries(model, "warnings")), "warning")
    head = common.decision_head(
        model,
        "Trend",
        fmt.line(model.get("title") or ""),
        chips=(with_noun(len(runs), "run"), fmt.line(model.get("label") or ""), _followed_value(model)),
        alerts=((alerts, "warnings"),) if alerts else (),
    )
    sections = (_arms(model, runs), _runs(model, runs), common.warnings(model, "Warnings", "warnings"))
    return Page(head, sections, data=lambda: common.flat_table(list(_flat(model, runs))))


def _arms(model: Analysis, runs: list[TrendRun]) -> Section:
    rows = []
    for arm in reading.entries(model, "arms"):
        name = str(arm.get("name") or "")
        base = arm.get("base")
        line = [value for run in runs if _counts(run, name, base) and (value := (run.get("values") or {}).get(name))]
        changes = [fmt.change(one.get("ratio")) for one in arm.get("changes") or []]
        rows.append(
            {
                "name": fmt.line(name),
                "runs": arm.get("runs"),
                "first": line[0] if line else None,
                "last": line[-1] if line else None,
                "changes": ", ".join(changes) or _drift(arm.get("drift")) or "none",
                "line": Cell(line),
            }
        )
    unit = _unit(model)
    shown = (
        *columns("name:text:arm runs:count"),
        Column("first", "first", unit),
        Column("last", "last", unit),
        Column("changes", "changes of level", "text"),
        Column("line", "in order of time", kind="spark"),
    )
    about = (
        "A change is reported at a run if nothing else explains it: chance, runs that resemble their predecessors, "
        "two modes of the"
        f" machine or a steady drift. The value of a run is {_value(model)}."
    )
    drawn = common.figures(model, "trend")
    return Section("trend_arms", "The arms over time", about, tables=(common.table("", shown, rows),), figures=drawn)


def _runs(model: Analysis, runs: list[TrendRun]) -> Section:
    arms = [(str(arm.get("name") or ""), str(arm.get("base") or "")) for arm in reading.entries(model, "arms")]
    names = [name for name, _ in arms]
    bases = sorted({base for _, base in arms if base})
    begins = {one.get("run"): name for name, one in _changes(model)}
    unit = _unit(model)
    shown = (
        *columns("started:text run:text blocks:count"),
        *(Column(f"arm{at}", _arm_label(name, base), unit) for at, (name, base) in enumerate(arms)),
        *(Column(f"base{at}", f"{fmt.line(name, 30)} (base)", _level_unit(model)) for at, name in enumerate(bases)),
        *columns("cpu:change:CPU_canary fsync:change:fsync_canary mark:text:_"),
    )
    rows = []
    for at, run in enumerate(runs):
        off = run.get("off") or {}
        marks = [f"{begins[at]} changed"] if at in begins else []
        marks += [f"{fmt.line(name, 30)} failed" for name in run.get("failed") or {}]
        marks += [] if run.get("comparable") else ["not comparable"]
        values = run.get("values") or {}
        cells: dict[str, object] = {f"arm{number}": values.get(name) for number, name in enumerate(names)}
        cells |= {f"base{number}": (run.get("levels") or {}).get(name) for number, name in enumerate(bases)}
        cells |= {
            "started": str(run.get("started_at") or "")[:16].replace("T", " "),
            "run": fmt.line(run.get("run") or ""),
            "blocks": run.get("blocks"),
            "cpu": off.get("cpu_ns"),
            "fsync": off.get("fsync_ns"),
            "mark": ", ".join(marks),
        }
        rows.append(Row(cells, style="" if run.get("comparable") else "dim"))
    return Section("trend_runs", "The runs", tables=(Table("", shown, tuple(rows)),))


def _counts(run: Entry, arm: str, base: object = None) -> bool:
    failed = run.get("failed") or {}
    return bool(run.get("comparable")) and arm not in failed and base not in failed


def _changes(model: Analysis) -> Iterator[tuple[str, Entry]]:
    for arm in reading.entries(model, "arms"):
        for one in arm.get("changes") or []:
            yield fmt.line(arm.get("name") or ""), one


def _drift(entry: Entry | None) -> str:
    """Return a drift in a few words, or ""."""
    if not entry:
        return ""
    step = entry.get("step")
    return f"{fmt.change(step.get('ratio'))}, sudden or slow" if step else f"drifts: {fmt.change(entry.get('ratio'))}"


def _followed_value(model: Analysis) -> str:
    return "ratio to the base arm" if model.get("follows") == "ratio" else "level of each arm"


def _value(model: Analysis) -> str:
    if model.get("follows") == "ratio":
        return "the arm's ratio to its base in the same run (`--level` uses the arm's own level)"
    return "the arm's own level, which also shows changes of the machine"


def _arm_label(name: str, base: str) -> str:
    return f"{fmt.line(name, 30)} to {fmt.line(base, 30)}" if base else fmt.line(name, 30)


def _unit(model: Analysis) -> str:
    return "change" if model.get("follows") == "ratio" else _level_unit(model)


def _level_unit(model: Analysis) -> str:
    return "per_s" if model.get("metric") == "throughput" else "ns"


def _flat(model: Analysis, runs: list[TrendRun]) -> Iterator[dict[str, object]]:
    begins = {(name, one.get("run")) for name, one in _changes(model)}
    bases = {arm.get("name"): arm.get("base") for arm in reading.entries(model, "arms")}
    for at, run in enumerate(runs):
        for name, value in (run.get("values") or {}).items():
            yield {
                "run": run.get("run"),
                "started_at": run.get("started_at"),
                "arm": name,
                "metric": model.get("metric"),
                "value": value,
                "low": (run.get("lows") or {}).get(name),
                "high": (run.get("highs") or {}).get(name),
                "base": bases.get(name),
                "level": (run.get("levels") or {}).get(name),
                "comparable": _counts(run, name, bases.get(name)),
                "changed": (fmt.line(name), at) in begins,
            }
