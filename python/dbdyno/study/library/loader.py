"""Study loader: the fastest method to load rows, and the amount of log that each method writes.

Every operation puts the same rows into a separate table that it has emptied before, and commits. Its time divided by
its rows is the time per row, and the work of all arms is equal. The methods:

    insert       one statement per row, one commit at the end
    batch        insert ... values with 100 rows per statement
    array        one parameter per column: insert ... select from unnest(...) (PostgreSQL)
    copy         copy ... from stdin, as text (PostgreSQL)
    copy-binary  the same rows in COPY's binary form (PostgreSQL)
    attach       a separate table, filled by COPY and attached as a partition (PostgreSQL)
    unlogged     copy into an unlogged table (PostgreSQL): lost in a crash
    minimal      copy on a server with wal_level=minimal: a table emptied in the same transaction is not logged, but
                 synced (PostgreSQL, embedded only)
    load         load data local infile (MariaDB)

Limits: one session, a narrow table without index; its rows are the same each time. `minimal` has a separate server
beside that of the others, on the same disk.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.factors import one_number, option_values
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Server, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

BATCH = 100
NOTE = "sixteen_letters_"
COLUMNS = "(id int, amount int, note text)"
MINIMAL = Server(settings={"wal_level": "minimal", "max_wal_senders": "0", "wal_skip_threshold": "0"})
"""Server for `minimal`, with a wal_skip_threshold of 0.

Below the default threshold (2 MB, more than the size of these rows) the server logs whole pages instead of syncing the
file; such a load wrote twice as much log as a plain copy.
"""
_DRAW = "\\set id random(1, 1000000000)\n"


def _table(way: str) -> str:
    return f"dbdyno_loader_{way.replace('-', '_')}"


def _rows_of(way: str, batch: int, rows: int) -> str:
    values = ", ".join(["(:id, 42, 'sixteen_letters_')"] * batch)
    return f"insert into {_table(way)} (id, amount, note) values {values};\n" * (rows // batch)  # noqa: S608


def _insert(way: str, rows: int) -> str:
    return _rows_of(way, 1, rows)


def _batch(way: str, rows: int) -> str:
    return _rows_of(way, BATCH, rows)


def _array(way: str, rows: int) -> str:
    del rows
    return f"insert into {_table(way)} select * from unnest(:ids::int[], :amounts::int[], :notes::text[]);\n"  # noqa: S608


def _copy(way: str, rows: int) -> str:
    del rows
    return f"copy {_table(way)} from stdin;\n"


def _copy_binary(way: str, rows: int) -> str:
    del rows
    return f"copy {_table(way)} from stdin (format binary);\n"


def _attach(way: str, rows: int) -> str:
    del rows
    part = f"{_table(way)}_part"
    return (
        f"drop table if exists {part};\ncreate table {part} {COLUMNS};\ncopy {part} from stdin;\n"
        f"alter table {_table(way)} attach partition {part} default;\n"
    )


def _load(way: str, rows: int) -> str:
    del rows
    return f"load data local infile 'rows' into table {_table(way)};\n"


WAYS: dict[str, Callable[[str, int], str]] = {
    "insert": _insert,
    "batch": _batch,
    "array": _array,
    "copy": _copy,
    "copy-binary": _copy_binary,
    "attach": _attach,
    "unlogged": _copy,
    "minimal": _copy,
}
WAYS_MARIADB: dict[str, Callable[[str, int], str]] = {"insert": _insert, "batch": _batch, "load": _load}
MARIADB = {"way": ",".join(WAYS_MARIADB), "rows": "10000"}


def _variables(way: str, rows: int) -> dict[str, str]:
    """Return the script variables with all rows, for loading methods that send all rows in one statement; else {}."""
    numbers = range(1_000_000, 1_000_000 + rows)
    if way in ("insert", "batch"):
        return {}
    if way == "array":
        return {
            "ids": f"{{{','.join(map(str, numbers))}}}",
            "amounts": f"{{{','.join(['42'] * rows)}}}",
            "notes": f"{{{','.join([NOTE] * rows)}}}",
        }
    if way == "copy-binary":
        return {"stdin_hex": binary(numbers).hex()}
    return {"stdin": "".join(f"{number}\t42\t{NOTE}\n" for number in numbers)}


def binary(numbers: Sequence[int]) -> bytes:
    """Return the rows in COPY's binary form (see "Binary Format" in PostgreSQL's documentation of COPY)."""
    head, end = b"PGCOPY\n\xff\r\n\0" + bytes(8), struct.pack(">h", -1)
    form = struct.Struct(">hiiiii16s")
    rows = b"".join(form.pack(3, 4, number, 4, 42, len(NOTE), NOTE.encode()) for number in numbers)
    return head + rows + end


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _make_plan(options, quick, WAYS)


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    return plan_on_target(_make_plan(options, quick, WAYS_MARIADB), target)


def _make_plan(options: Mapping[str, str], quick: bool, known: Mapping[str, Callable[[str, int], str]]) -> Plan:
    rows = one_number(options["rows"], "rows")
    if rows % BATCH:
        raise PlanError(
            f"{rows} rows are not a multiple of {BATCH}, the number of rows per statement",
            where="--set rows",
            next_step="write for example --set rows=10000",
        )
    ways = option_values(options["way"], "way")
    unknown = next((way for way in ways if way not in known), None)
    if unknown is not None:
        raise PlanError(
            f"{unknown!r} is not a loading method",
            where="--set way",
            next_step=f"name one or several of {', '.join(known)}",
        )
    on_mariadb = known is WAYS_MARIADB
    return Plan(
        **STUDY.heading,
        arms=[_arm(way, rows, known[way](way, rows), on_mariadb=on_mariadb) for way in ways],
        workload=Workload(setup=_setup(ways), teardown=_teardown(ways)),
        schedule=Schedule(
            blocks=4 if quick else 12,
            warmup_blocks=1,
            turn_transactions=2 if quick else 5,
            settle_ns=50_000_000,
        ),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05),
    )


def _arm(way: str, rows: int, text: str, *, on_mariadb: bool) -> Arm:
    empty = "" if way == "attach" else f"truncate table {_table(way)};\n"
    # On MariaDB TRUNCATE commits, so it comes before the transaction.
    script = f"{empty}begin;\n{text}commit;\n" if on_mariadb else f"begin;\n{empty}{text}commit;\n"
    return Arm(
        way,
        scripts=[Script(f"{rows} rows", _DRAW + script)],
        variables=_variables(way, rows),
        protocol="simple" if way == "load" else None,
        server=MINIMAL if way == "minimal" else None,
    )


def _setup(ways: Sequence[str]) -> list[str]:
    """Return the statements that create a table for each loading method; every server creates all tables."""
    made = []
    for way in ways:
        kind = "unlogged table" if way == "unlogged" else "table"
        end = " partition by list (id)" if way == "attach" else ""
        made.append(f"create {kind} {_table(way)} {COLUMNS}{end}")
    return made


def _teardown(ways: Sequence[str]) -> list[str]:
    return [f"drop table {_table(way)}" for way in ways]


STUDY = Study(
    name="loader",
    question="Which loading method is fastest, and how much log does each write?",
    workload="Each operation empties a narrow table, loads 10,000 rows into it with one of eight methods, and "
    "commits. The log that each method writes and the processor time of both sides are among the measures.",
    targets="PostgreSQL: embedded, or one named by --target (without minimal). MariaDB: --target mariadb, or one named "
    "so, with the ways insert, batch and load",
    source="Guy Harrison: a plain loader against a direct path loader (E25); Quest's connector for Hadoop",
    found_there="Direct path loads were at least five times as fast as conventional inserts, and wrote almost no redo.",
    factors=(
        Factor("way", ", ".join(WAYS), ",".join(WAYS), quick="insert,batch,copy,copy-binary"),
        Factor("rows", f"rows of an operation; a multiple of {BATCH}", "10000", quick="1000"),
    ),
    make=_plan,
    variants={"mariadb": Variant(MARIADB, _on_mariadb)},
)
