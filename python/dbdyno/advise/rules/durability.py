"""Rule: settings with which a crash loses or corrupts data."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, Rule

_SWITCHES = (
    ("fsync", "after a machine crash the database can be corrupted beyond repair"),
    ("full_page_writes", "a page torn by a crash cannot be repaired, unless the storage writes 8 kB atomically"),
)


def _judge(name: str, loss: str) -> Callable[[Facts], Iterator[Advice]]:
    def judge(facts: Facts) -> Iterator[Advice]:
        found = facts.setting(name)
        if found is None or found.is_on:
            return
        yield Advice(
            f"{name} is off: {loss}",
            (Evidence(name, found.value, "text", f"pg_settings (source: {found.source})"),),
            "no time: commits become slower; figures measured this way apply to no server that must keep its data",
            (f"alter system set {name} = on", "select pg_reload_conf()"),
            level="critical",
            subject=name,
        )

    return judge


RULES = tuple(
    Rule(
        name=name,
        family="durability",
        title=f"{name} is off",
        reads=(Setting,),
        condition=f"{name} = off",
        expects="safety, not time",
        risk="commits wait for the storage",
        source="PostgreSQL documentation, Write Ahead Log (2025)",
        refuted="the data can be restored from elsewhere at any time",
        judge=_judge(name, loss),
    )
    for name, loss in _SWITCHES
)
