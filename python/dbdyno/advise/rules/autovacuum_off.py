"""Rule: autovacuum is switched off."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.kinds import Setting, Table
from dbdyno.advise.rule import Advice, Evidence, Rule


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if autovacuum or track_counts is off while rows change."""
    tables = facts.rows_of(Table)
    changed = sum(one.updated + one.deleted for one in tables)
    for name in ("autovacuum", "track_counts"):
        switch = facts.setting(name)
        if switch is None or switch.is_on or (name == "autovacuum" and not changed):
            continue
        yield Advice(
            f"{name} is off: nothing is vacuumed or analysed automatically, and {count(changed)} rows were updated or"
            " deleted",
            (
                Evidence(name, switch.value, "text", f"pg_settings (source: {switch.source})"),
                Evidence("rows updated or deleted", changed, "count", "pg_stat_user_tables, all tables"),
                Evidence("dead rows", sum(one.dead for one in tables), "count", "pg_stat_user_tables.n_dead_tup"),
            ),
            "scans read dead rows, statistics become stale, and only the emergency freeze of the "
            "oldest tables still runs",
            (f"alter system set {name} = on", "select pg_reload_conf()"),
            subject=name,
        )


RULE = Rule(
    name="autovacuum_off",
    family="vacuum",
    title="autovacuum or track_counts is off",
    reads=(Setting, Table),
    condition="track_counts is off, or autovacuum is off and rows were updated or deleted",
    expects="reads of dead rows, and plans based on old statistics",
    risk="after a long time without autovacuum, its first round is heavy: first vacuum the largest tables manually",
    source="PostgreSQL documentation, Routine Vacuuming (2025)",
    refuted="a separate schedule vacuums every table",
    judge=judge,
)
