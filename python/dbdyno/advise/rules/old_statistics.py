"""Rule: tables that have changed much since they were analysed, or were never analysed."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, duration, setting_number, share, table_number
from dbdyno.advise.kinds import Server, Setting, Table
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LEAST_ROWS, TIMES, MOST = 1000, 2, 10
CHANCE_S = 600.0
"""Time in seconds within which autovacuum should have analysed a table; ten of its rounds if that is longer."""


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding per table, most changed first."""
    server = facts.row_of(Server)
    if server.at_us is None:
        yield InsufficientEvidence("the server's time is not known")
        return
    chance_s = max(CHANCE_S, 10 * setting_number(facts, "autovacuum_naptime", 60))
    found = [one for one in facts.rows_of(Table) if _is_old(facts, server, one, chance_s)]
    for one in sorted(found, key=lambda table: -table.modified)[:MOST]:
        yield _advice(one, server.at_us)


def _is_old(facts: Facts, server: Server, table: Table, chance_s: float) -> bool:
    base = table_number(facts, table, "autovacuum_analyze_threshold", 50)
    scale = table_number(facts, table, "autovacuum_analyze_scale_factor", 0.1)
    switch = facts.setting("autovacuum")
    never = table.option("autovacuum_enabled") in ("false", "off", "0", "no") or (
        switch is not None and not switch.is_on
    )
    since_us = max(table.analyzed_us or 0, server.started_us or 0)
    had_chance = never or ((server.at_us or 0) - since_us) / 1e6 >= chance_s
    analysed = max(table.estimated_rows or 0, 0)
    return (
        max(table.rows, analysed) >= LEAST_ROWS and table.modified >= TIMES * (base + scale * analysed) and had_chance
    )


def _advice(table: Table, at_us: int) -> Advice:
    when = f"analysed {duration((at_us - table.analyzed_us) / 1e6)} ago" if table.analyzed_us else "never analysed"
    return Advice(
        f"{count(table.modified)} rows of {table.name} changed since its statistics were made"
        f" ({share(table.modified / max(table.rows, 1))} of its rows; {when})",
        (
            Evidence(
                "changed since", table.modified, "count", f"pg_stat_user_tables, {table.name}, n_mod_since_analyze"
            ),
            Evidence("rows now", table.rows, "count", f"pg_stat_user_tables, {table.name}, n_live_tup (an estimate)"),
            Evidence(
                "rows that the planner expects", table.estimated_rows, "count", f"pg_class, {table.name}, reltuples"
            ),
            Evidence("last analysed", table.analyzed_us, "time", f"pg_stat_user_tables, {table.name}"),
        ),
        "only statements whose plan changes gain; a plan for an empty or much smaller table can be "
        "slower by any factor",
        (f"analyze (verbose) {table.name}",),
        level="hint",
        subject=table.name,
    )


RULE = Rule(
    name="old_statistics",
    family="vacuum",
    title="Old statistics of tables",
    reads=(Server, Setting, Table),
    condition="the table has 1,000 rows or more and twice the changes of autoanalyze's threshold, and autovacuum is "
    "off for it or has had ten minutes to analyze it",
    expects="time of statements with wrong estimates",
    risk="plans change",
    source="PostgreSQL documentation, Updating Planner Statistics (2025)",
    refuted="EXPLAIN shows the same plans before and after",
    judge=judge,
)
