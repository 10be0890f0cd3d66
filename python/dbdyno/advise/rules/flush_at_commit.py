"""Rule: settings of MariaDB with which an acknowledged commit may not be on disk yet."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, Level, Rule

_LOST: tuple[tuple[str, frozenset[str], str, str, Level], ...] = (
    (
        "innodb_flush_log_at_trx_commit",
        frozenset("02"),
        "1",
        "a crash loses the last second of commits",
        "warning",
    ),
    ("innodb_doublewrite", frozenset(("OFF", "0")), "ON", "a page torn by a crash cannot be repaired", "critical"),
)


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per setting with which an acknowledged commit may be lost."""
    for name, bad, good, loss, level in _LOST:
        found = facts.setting(name)
        if found is None or found.value not in bad:
            continue
        yield Advice(
            f"{name} = {found.value}: {loss}",
            (Evidence(name, found.value, "text", "global variables"),),
            "no time: commits become slower; figures measured this way apply to no server that must keep its data",
            (f"set global {name} = {good}  -- and in the server's configuration",),
            level=level,
            subject=name,
        )


RULE = Rule(
    name="flush_at_commit",
    family="durability",
    title="Commits that are not on disk",
    reads=(Setting,),
    condition="innodb_flush_log_at_trx_commit is 0 or 2, or innodb_doublewrite is off",
    expects="safety, not time",
    risk="commits wait for the storage",
    source="MariaDB documentation, InnoDB System Variables (2025)",
    refuted="the data can be restored from elsewhere at any time, or the file system writes pages atomically",
    judge=judge,
    engines=("mariadb",),
)
