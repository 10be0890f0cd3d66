"""Study insert-size: number of rows per insert statement, and per commit.

Every operation inserts the same 1,000 rows, in statements of 1 to 1,000 rows each. A millisecond per operation is
therefore a microsecond per row, and the work of all arms is equal. The commit is at the end of the operation, after
each statement, or after a number of rows. The forms:

    values      insert ... values (...), (...), ...
    pipeline    single-row inserts, sent together and answered together: what drivers call a batch (PostgreSQL)
    array       one parameter per column: insert ... select from unnest(...) (PostgreSQL)
    copy        copy ... from stdin (PostgreSQL)
    load        load data local infile (MariaDB), sent as text: it cannot be prepared

Limits: one session and one narrow table without index; it grows during the run by a few hundred megabytes at most. The
rows of array, copy and load are the same each time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from dbdyno.base.errors import PlanError
from dbdyno.study.library.data import BOTH_ENGINES
from dbdyno.study.plan.factors import known_values, numbers, one_number, option_values
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

TABLE = "dbdyno_insert_size"
_DRAW = "\\set id random(1, 1000000000)\n"
_INTO = f"insert into {TABLE} (id, amount, note) "


def _values(batch: int) -> str:
    return _INTO + "values " + ", ".join(["(:id, :amount, :note)"] * batch) + ";\n"


def _pipeline(batch: int) -> str:
    return "\\startpipeline\n" + _values(1) * batch + "\\endpipeline\n"


def _array(batch: int) -> str:
    del batch
    return f"{_INTO}select * from unnest(:ids::int[], :amounts::int[], :notes::text[]);\n"  # noqa: S608


def _copy(batch: int) -> str:
    del batch
    return f"copy {TABLE} from stdin;\n"


def _load(batch: int) -> str:
    del batch
    return f"load data local infile 'rows' into table {TABLE};\n"


FORMS: dict[str, Callable[[int], str]] = {"values": _values, "pipeline": _pipeline, "array": _array, "copy": _copy}
FORMS_MARIADB: dict[str, Callable[[int], str]] = {"values": _values, "load": _load}
END, STATEMENT = "end", "statement"
MARIADB = {"batch": "1,10,100,1000", "commit": "end,statement", "form": "values", "rows": "1000"}


def _commits(text: str, batches: list[int], rows: int) -> dict[str, int | None]:
    """Return the rows per commit for each level that `--set commit` names; None if each statement commits.

    Raises:
        PlanError: A level is neither "end" nor "statement" nor a number of rows that fits the batches and the
            operation.
    """
    found: dict[str, int | None] = {}
    for word in option_values(text, "commit"):
        if word in (END, STATEMENT):
            found[word] = rows if word == END else None
            continue
        if not word.isdecimal() or any(not int(word) or int(word) % batch or rows % int(word) for batch in batches):
            raise PlanError(
                f"commit {word!r} is neither {END} nor {STATEMENT}, nor a divisor of {rows} that is a multiple"
                f" of {', '.join(map(str, batches))} (the numbers of rows per statement)",
                where="--set commit",
                next_step=f"write for example --set commit={END},{STATEMENT},{max(batches)}",
            )
        found[word] = int(word)
    return found


def _script(statement: str, batch: int, rows: int, commit: int | None) -> Script:
    """Return an operation's script: `rows` rows in statements of `batch` rows, with a commit after `commit` rows.

    If `commit` is None, each statement commits.
    """
    if commit is None:
        text = statement * (rows // batch)
    else:
        text = f"begin;\n{statement * (commit // batch)}commit;\n" * (rows // commit)
    return Script(f"{rows} rows", _DRAW + text)


def _variables(form: str, batch: int) -> dict[str, str]:
    """Return the script variables with the rows of a batch, for forms that send a batch in one piece."""
    if form in ("copy", "load"):
        return {"stdin": "".join(f"{1_000_000 + at}\t42\tsixteen_letters_\n" for at in range(batch))}
    if form != "array":
        return {}
    ids = ",".join(str(1_000_000 + at) for at in range(batch))
    return {
        "ids": f"{{{ids}}}",
        "amounts": f"{{{','.join(['42'] * batch)}}}",
        "notes": f"{{{','.join(['sixteen_letters_'] * batch)}}}",
    }


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _make_plan(options, quick, FORMS)


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    return plan_on_target(_make_plan(options, quick, FORMS_MARIADB), target)


def _make_plan(options: Mapping[str, str], quick: bool, forms: Mapping[str, Callable[[int], str]]) -> Plan:
    rows = one_number(options["rows"], "rows")
    batches = numbers(options["batch"], "batch")
    for batch in batches:
        if rows % batch:
            raise PlanError(
                f"{rows} rows cannot be divided into statements of {batch} rows",
                where="--set batch",
                next_step=f"name numbers that divide {rows}, or give another --set rows",
            )
    commits = _commits(options["commit"], batches, rows)
    arms = [
        Arm(
            f"form {form}, commit {commit}, batch {batch}",
            scripts=[_script(forms[form](batch), batch, rows, every)],
            variables=_variables(form, batch),
            protocol="simple" if form == "load" else None,
            levels={"form": form, "commit": commit, "batch": str(batch)},
        )
        for form, (commit, every), batch in itertools.product(
            known_values(options["form"], forms, "form"), commits.items(), batches
        )
    ]
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["form", "commit", "batch"],
        arms=arms,
        workload=Workload(
            variables={"amount": "42", "note": "sixteen_letters_"},
            setup=[f"create table {TABLE} (id int, amount int, note text)"],
            teardown=[f"drop table {TABLE}"],
        ),
        schedule=Schedule(
            # A commit per row waits for the disk once per row: that arm alone takes half of the time.
            blocks=6 if quick else 12,
            warmup_blocks=1,
            turn_transactions=5,
            settle_ns=50_000_000,
        ),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05, equal_work=True),
    )


STUDY = Study(
    name="insert-size",
    question="How many rows should one insert bring, and how many one commit?",
    workload="Each operation inserts 1,000 rows into a narrow table, in statements of BATCH rows, committed at its end "
    "or after each statement: one millisecond per operation is one microsecond per row.",
    targets=f"{BOTH_ENGINES}, with the forms values and load",
    source="Guy Harrison: array inserts through JDBC, as those of array fetches (E3)",
    found_there="A gain similar to that of array fetch: most of it up to 100 rows, little beyond.",
    factors=(
        Factor("batch", "rows per statement; a divisor of ROWS", "1,10,100,1000"),
        Factor(
            "commit",
            "end: once per operation; statement: after each; or a number of rows",
            "end,statement",
            quick="end",
        ),
        Factor("form", "values, pipeline, array, copy", "values", full="values,pipeline,array,copy"),
        Factor("rows", "rows of an operation", "1000"),
    ),
    make=_plan,
    variants={"mariadb": Variant(MARIADB, _on_mariadb)},
)
