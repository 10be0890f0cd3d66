"""What one needs to run it again: seed, order, plan, identity."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """The run's facts and its plan, or None without a run."""
    run = reading.dig(analysis, "run") or {}
    facts = [(name, words) for name, words in _facts(run) if words]
    plan = fmt.text(run.get("plan_toml") or "")
    return {"facts": facts, "plan": plan} if facts or plan else None


def _facts(run: dict[str, Any]) -> list[tuple[str, str]]:
    def given(key: str) -> str:
        return "" if run.get(key) is None else fmt.line(run[key])

    whole, planned = run.get("blocks_whole"), run.get("blocks_planned")
    blocks = f"{fmt.count(whole)} whole, {fmt.count(planned)} planned" if whole is not None else ""
    if blocks and run.get("warmup_blocks") is not None:
        blocks += f", {fmt.count(run['warmup_blocks'])} to warm up"
    switch = given("switch")
    if switch and run.get("slice_ms") is not None:
        switch += f" of {fmt.line(run['slice_ms'])}{fmt.THIN}ms"
    return [
        ("run", given("id")),
        ("status", given("status")),
        ("seed", given("seed")),
        ("started", fmt.moment(run.get("started_at")) if run.get("started_at") else ""),
        ("took", fmt.span(run.get("duration_s")) if run.get("duration_s") is not None else ""),
        ("blocks", blocks),
        ("switch between arms", switch),
        ("order", given("order")),
        ("dbdyno", given("tool_version")),
    ]


SECTION = base.Section("run", "Run it again", view)
