"""Rule: tables with many more dead rows than autovacuum's threshold, and what prevents vacuum."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, setting_number, share, table_number
from dbdyno.advise.kinds import PreparedTransaction, Session, Setting, Slot, Table
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_ROWS, LEAST_SHARE, TIMES = 10_000, 0.2, 2
HELD_AGE = 100_000
"""Age of a vacuum horizon, in transactions begun since then; an older horizon keeps vacuum from removing rows."""
MOST = 10


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per table, most dead rows first."""
    found = []
    for one in facts.rows_of(Table):
        limit = threshold(facts, one)
        bloated = one.dead >= LEAST_ROWS and one.dead >= LEAST_SHARE * (one.dead + one.rows)
        if bloated and one.dead >= TIMES * limit and one.seq_scans + (one.idx_scans or 0) > 0:
            found.append((one, limit))
    for one, limit in sorted(found, key=lambda pair: -pair[0].dead)[:MOST]:
        yield _advice(facts, one, limit)


def threshold(facts: Facts, table: Table) -> float:
    """Return the number of dead rows at which autovacuum processes a table, from the table's or server's settings."""
    base = table_number(facts, table, "autovacuum_vacuum_threshold", 50)
    scale = table_number(facts, table, "autovacuum_vacuum_scale_factor", 0.2)
    most = setting_number(facts, "autovacuum_vacuum_max_threshold", -1)
    rows = max(table.estimated_rows if table.estimated_rows is not None else table.rows, 0)
    limit = base + scale * rows
    return min(limit, most) if most >= 0 else limit


def _advice(facts: Facts, table: Table, limit: float) -> Advice:
    why, fix = _reason(facts, table)
    dead = table.dead / (table.dead + table.rows)
    return Advice(
        f"{table.name} has {count(table.dead)} dead rows, {share(dead)} of all; {why}",
        (
            Evidence("dead rows", table.dead, "count", f"pg_stat_user_tables, {table.name}, n_dead_tup (an estimate)"),
            Evidence("live rows", table.rows, "count", f"pg_stat_user_tables, {table.name}, n_live_tup"),
            Evidence("threshold of autovacuum", limit, "count", "base + scale × reltuples"),
            Evidence("scans", table.seq_scans + (table.idx_scans or 0), "count", f"pg_stat_user_tables, {table.name}"),
        ),
        f"up to {share(dead)} of the pages that each full scan reads; point look-ups gain little",
        fix,
        subject=table.name,
    )


def _reason(facts: Facts, table: Table) -> tuple[str, tuple[str, ...]]:
    """Return why the table was not vacuumed, and the steps to take in order."""
    holder = _holder(facts)
    if holder is not None:
        return f"{holder[0]} prevents vacuum from removing dead rows", (holder[1], f"vacuum (verbose) {table.name}")
    if table.option("autovacuum_enabled") in ("false", "off", "0", "no"):
        return "autovacuum is switched off for it", (
            f"alter table {table.name} reset (autovacuum_enabled)",
            f"vacuum (verbose) {table.name}",
        )
    switch = facts.setting("autovacuum")
    if switch is not None and not switch.is_on:
        return "autovacuum is off", ("alter system set autovacuum = on", "select pg_reload_conf()")
    return "autovacuum does not keep up", (
        f"vacuum (verbose) {table.name}",
        "alter system set autovacuum_vacuum_cost_limit = 2000  -- ten times the default; one budget for all workers",
    )


def _holder(facts: Facts) -> tuple[str, str] | None:
    """Return the transaction or slot that holds the oldest vacuum horizon, and the next step; None if it is recent."""
    ages: list[tuple[int, str, str]] = []
    for session in facts.rows.get(Session, ()):
        step = f"-- end it in its application, or: select pg_terminate_backend({session.pid})"
        ages.append((session.xmin_age or 0, f"the transaction of process {session.pid}", step))
    for prepared in facts.rows.get(PreparedTransaction, ()):
        step = "-- commit prepared or rollback prepared, whichever its coordinator decided"
        ages.append((prepared.xmin_age, f"the prepared transaction {prepared.name}", step))
    for slot in facts.rows.get(Slot, ()):
        step = "-- start its consumer, or drop the slot"
        ages.append((slot.xmin_age or 0, f"the replication slot {slot.name}", step))
    oldest = max(ages, default=None)
    return (oldest[1], oldest[2]) if oldest is not None and oldest[0] >= HELD_AGE else None


RULE = Rule(
    name="dead_rows",
    family="vacuum",
    title="Tables full of dead rows",
    reads=(Setting, Table),
    condition="the table is scanned, and its dead rows are at least 10,000, 20 % of its rows "
    "and twice autovacuum's threshold",
    expects="pages of dead rows that scans read",
    risk="vacuum reads and writes the table; the file does not become smaller, but its space is reused",
    source="PostgreSQL documentation, Routine Vacuuming (2025)",
    refuted="pages read per row returned stay the same after the vacuum",
    judge=judge,
)
