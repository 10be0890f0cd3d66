"""Built-in workloads: scripts with the SQL that creates and removes their tables, for each engine.

There are two families. TPC-B in the form that pgbench made common (tpcb-like, simple-update, select-only) has a branch,
ten tellers and 100,000 accounts per unit of scale. Sysbench's OLTP tables and mixes (oltp-point-select, oltp-read-only,
oltp-read-write) have one table of 100,000 rows per unit of scale, with a number (`k`, indexed), a text of 119
characters (`c`) and one of 59 (`pad`), and uniformly distributed keys. All objects are in a separate schema, `dbdyno`,
which the run removes again; it is in no schema search path, and on MariaDB it is a database.

Both engines get the same tables, rows and statements, except for differences in syntax.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.plan import Script, Workload

_TABLES = [
    "create schema dbdyno",
    "create table dbdyno.branches (bid int not null, bbalance int, filler char(88)){packed}",
    "create table dbdyno.tellers (tid int not null, bid int, tbalance int, filler char(84)){packed}",
    "create table dbdyno.accounts (aid int not null, bid int, abalance int, filler char(84)){packed}",
    "create table dbdyno.history (tid int, bid int, aid int, delta int, mtime {moment}, filler char(22))",
]

_KEYS = [
    "alter table dbdyno.branches add primary key (bid)",
    "alter table dbdyno.tellers add primary key (tid)",
    "alter table dbdyno.accounts add primary key (aid)",
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
    "{end};\n"
)

_ID = "\\set {name} random(1, 100000 * :scale)\n"
_POINT = _ID.format(name="id") + "select c from dbdyno.sbtest where id = :id;\n"
_RANGE = _ID.format(name="first") + "\\set last :first + 99\n"
_READS = _POINT * 10 + "".join(
    _RANGE + statement + ";\n"
    for statement in (
        "select c from dbdyno.sbtest where id between :first and :last",
        "select sum(k) from dbdyno.sbtest where id between :first and :last",
        "select c from dbdyno.sbtest where id between :first and :last order by c",
        "select distinct c from dbdyno.sbtest where id between :first and :last order by c",
    )
)
_TEXT = "rpad({r}, {length}, concat('-', {r}))"
_WRITES = (
    _ID.format(name="id")
    + "update dbdyno.sbtest set k = k + 1 where id = :id;\n"
    + _ID.format(name="id")
    + "\\set r random(10000000000, 99999999999)\n"
    + "update dbdyno.sbtest set c = {c} where id = :id;\n"
    + _ID.format(name="id")
    + _ID.format(name="k")
    + "delete from dbdyno.sbtest where id = :id;\n"
    + "insert into dbdyno.sbtest (id, k, c, pad) values (:id, :k, {c}, {pad});\n"
)


@dataclass(frozen=True)
class _Words:
    """Syntax that differs between engines.

    `each` is a table expression with the rows 1 to {rows} as i; `text` converts a number to text; `rest` is the value
    for columns without one.
    """

    packed: str
    moment: str
    end: str
    whole: str
    text: str
    each: str
    statistics: str
    rest: str
    drop: str


_WORDS = {
    "postgres": _Words(
        " with (fillfactor = 100)",
        "timestamp",
        "end",
        "({} - 1) / {}",
        "{}::text",
        "generate_series(1, {rows}) i",
        "vacuum analyze {tables}",
        "",
        "drop schema if exists dbdyno cascade",
    ),
    "mariadb": _Words(
        " engine = InnoDB",
        "timestamp(6)",
        "commit",
        "({} - 1) div {}",
        "cast({} as char)",
        "(select seq as i from dbdyno.seq_1_to_{rows}) each_row",
        "analyze table {tables}",
        ", null",
        "drop schema if exists dbdyno",
    ),
}
NAMES = ("tpcb-like", "simple-update", "select-only", "oltp-point-select", "oltp-read-only", "oltp-read-write")


@dataclass(frozen=True)
class BuiltInWorkload:
    """Scripts, set-up and teardown of a built-in workload."""

    scripts: list[Script]
    setup: list[str]
    teardown: list[str]


def builtin_workload(name: str, scale: int, engine: str = "postgres") -> BuiltInWorkload:
    """Return the built-in workload `name` at `scale` (100,000 accounts or rows each) for one engine.

    Raises:
        PlanError: There is no such workload.
    """
    if name not in NAMES:
        raise PlanError(f"there is no built-in workload {name!r}", next_step=f"use one of {', '.join(NAMES)}")
    words = _WORDS[engine]
    oltp = name.startswith("oltp-")
    return BuiltInWorkload(
        scripts=[Script(name, _oltp_script(name, words) if oltp else _script(name, words))],
        setup=_oltp_tables(scale, words) if oltp else _tables(scale, words),
        teardown=[words.drop],
    )


def workload_for_engine(work: Workload, engine: str) -> Workload:
    """Return a workload whose built-in part is in the engine's syntax; what the plan adds to it is unchanged."""
    if work.builtin is None:
        return work
    plain, own = (builtin_workload(work.builtin, work.scale, name) for name in ("postgres", engine))
    before, after = len(plain.setup), len(work.teardown) - len(plain.teardown)
    if work.setup[:before] != plain.setup:  # it is already converted
        return work
    return replace(
        work,
        scripts=own.scripts,
        setup=[*own.setup, *work.setup[before:]],
        teardown=[*work.teardown[:after], *own.teardown],
    )


def _script(name: str, words: _Words) -> str:
    if name == "select-only":
        return "\\set aid random(1, 100000 * :scale)\nselect abalance from dbdyno.accounts where aid = :aid;\n"
    middle = _TELLER_AND_BRANCH if name == "tpcb-like" else ""
    return _TRANSFER.format(middle=middle, end=words.end)


def _tables(scale: int, words: _Words) -> list[str]:
    def fill(table: str, columns: str, rows: int) -> str:
        return f"insert into dbdyno.{table} select {columns} from {words.each.format(rows=rows)}"

    return [
        *(table.format(packed=words.packed, moment=words.moment) for table in _TABLES),
        fill("branches", f"i, 0{words.rest}", scale),
        fill("tellers", f"i, {words.whole.format('i', 10)} + 1, 0{words.rest}", scale * 10),
        fill("accounts", f"i, {words.whole.format('i', 100000)} + 1, 0, ''", scale * 100000),
        *_KEYS,
        words.statistics.format(tables="dbdyno.branches, dbdyno.tellers, dbdyno.accounts"),
    ]


def _text(number: str, length: int, words: _Words) -> str:
    """Return an SQL expression for a text of this length, which repeats a number of eleven digits."""
    return _TEXT.format(r=words.text.format(number), length=length)


def _oltp_script(name: str, words: _Words) -> str:
    if name == "oltp-point-select":
        return _POINT
    writes = _WRITES.format(c=_text(":r", 119, words), pad=_text(":r", 59, words))
    return "begin;\n" + _READS + (writes if name == "oltp-read-write" else "") + f"{words.end};\n"


def _oltp_tables(scale: int, words: _Words) -> list[str]:
    # A number of eleven digits that is computed from the row's number.
    digits = "(10000000000 + ((10000000000 + i) * 7919) % 89999999999)"
    rows = scale * 100000
    columns = f"i, 1 + ((10000000000 + i) * 7919) % {rows}, {_text(digits, 119, words)}, {_text(digits, 59, words)}"
    return [
        "create schema dbdyno",
        "create table dbdyno.sbtest (id int not null, k int not null default 0, c char(120) not null default '',"
        f" pad char(60) not null default ''){words.packed}",
        f"insert into dbdyno.sbtest select {columns} from {words.each.format(rows=rows)}",
        "alter table dbdyno.sbtest add primary key (id)",
        "create index k_1 on dbdyno.sbtest (k)",
        words.statistics.format(tables="dbdyno.sbtest"),
    ]
