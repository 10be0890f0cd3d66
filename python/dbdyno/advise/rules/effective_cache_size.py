"""Rule: effective_cache_size is smaller than the amount that is certainly cached."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import setting_size, size
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, Rule


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if the planner assumes a cache smaller than shared_buffers alone."""
    told, buffers = facts.setting("effective_cache_size"), facts.setting("shared_buffers")
    if told is None or buffers is None or told.bytes >= buffers.bytes:
        return
    wanted = setting_size(2 * buffers.bytes)
    yield Advice(
        f"effective_cache_size is {size(told.bytes)}, less than shared_buffers alone ({size(buffers.bytes)})",
        (
            Evidence("effective_cache_size", told.bytes, "bytes", "pg_settings"),
            Evidence("shared_buffers", buffers.bytes, "bytes", "pg_settings"),
        ),
        "only statements whose plan changes gain: the planner costs repeated index scans as if the cache were smaller",
        (f"alter system set effective_cache_size = '{wanted}'", "select pg_reload_conf()"),
        level="hint",
        subject="effective_cache_size",
        proposed=wanted,
    )


RULE = Rule(
    name="effective_cache_size",
    family="planner",
    title="effective_cache_size below shared_buffers",
    reads=(Setting,),
    condition="effective_cache_size < shared_buffers",
    expects="time of statements whose plan changes; nothing if no plan changes",
    risk="plans change; the setting reserves no memory",
    source="PostgreSQL documentation, Query Planning (2025)",
    refuted="EXPLAIN shows the same plans under both values",
    judge=judge,
    setting="effective_cache_size",
)
