"""Built-in workloads: scripts with the SQL that makes and removes their tables.

The three come from TPC-B as pgbench made it common: a branch, ten tellers and 100,000 accounts per
unit of scale. Everything lives in a schema of its own, `dbdyno`, which the run removes again.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.errors import PlanError
from dbdyno.study.plan.plan import Script

_TABLES = [
    "create schema dbdyno",
    "create table dbdyno.branches (bid int not null, bbalance int, filler char(88)) with (fillfactor = 100)",
    "create table dbdyno.tellers (tid int not null, bid int, tbalance int, filler char(84)) with (fillfactor = 100)",
    "create table dbdyno.accounts (aid int not null, bid int, abalance int, filler char(84)) with (fillfactor = 100)",
    "create table dbdyno.history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
]

_KEYS = [
    "alter table dbdyno.branches add primary key (bid)",
    "alter table dbdyno.tellers add primary key (tid)",
    "alter table dbdyno.accounts add primary key (aid)",
    "vacuum analyze dbdyno.branches, dbdyno.tellers, dbdyno.accounts",
]

_TELLER_AND_BRANCH = (
    "update dbdyno.tellers set tbalance = tbalance + :delta where tid = :tid;\n"
    "update dbdyno.branches set bbalance = bbalance + :delta where bid = :bid;\n"
)

_TRANSFER = (
    "\\set aid random(1, 100000 * :scale)\n"
    "\\set bid random(1, 1 * :scale)\n"
    "\\set tid random(1, 10 * :scale)\n"
    "\\set delta random(-5000, 5000)\n"
    "begin;\n"
    "update dbdyno.accounts set abalance = abalance + :delta where aid = :aid;\n"
    "select abalance from dbdyno.accounts where aid = :aid;\n"
    "{middle}"
    "insert into dbdyno.history (tid, bid, aid, delta, mtime)"
    " values (:tid, :bid, :aid, :delta, current_timestamp);\n"
    "end;\n"
)

_SCRIPTS = {
    "tpcb-like": _TRANSFER.format(middle=_TELLER_AND_BRANCH),
    "simple-update": _TRANSFER.format(middle=""),
    "select-only": ("\\set aid random(1, 100000 * :scale)\nselect abalance from dbdyno.accounts where aid = :aid;\n"),
}


@dataclass(frozen=True)
class BuiltIn:
    """Scripts, set-up and teardown of a built-in workload."""

    scripts: list[Script]
    setup: list[str]
    teardown: list[str]


def builtin_workload(name: str, scale: int) -> BuiltIn:
    """The built-in workload `name` at `scale` (100,000 accounts each)."""
    if name not in _SCRIPTS:
        raise PlanError(f"no built-in workload {name!r}", next_step=f"one of {', '.join(_SCRIPTS)}")
    fill = "insert into dbdyno.{} select {} from generate_series(1, {}) i"
    rows = [
        fill.format("branches", "i, 0", scale),
        fill.format("tellers", "i, (i - 1) / 10 + 1, 0", scale * 10),
        fill.format("accounts", "i, (i - 1) / 100000 + 1, 0, ''", scale * 100000),
    ]
    return BuiltIn(
        scripts=[Script(name, _SCRIPTS[name])],
        setup=[*_TABLES, *rows, *_KEYS],
        teardown=["drop schema if exists dbdyno cascade"],
    )
