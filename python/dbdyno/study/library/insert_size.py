"""Study insert-size: how many rows should one insert bring, and how many one commit?

Every operation inserts the same 1,000 rows, in statements of 1 to 1,000 rows each: so a millisecond of its time is a
microsecond a row, and the work of all arms is equal. The commit stands at the end of the operation, or after each
statement. The forms:

    values      insert ... values (...), (...), ...
    pipeline    single-row inserts, sent together and answered together: what drivers call a batch
    array       one parameter per column: insert ... select from unnest(...)

Limits: one session and one narrow table without index; it grows during the run by a few hundred megabytes at most. COPY
is not compared: a script has no data for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from dbdyno.errors import PlanError
from dbdyno.study.plan.factors import numbers, one_number, words
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study

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


FORMS: dict[str, Callable[[int], str]] = {"values": _values, "pipeline": _pipeline, "array": _array}
COMMITS = ("end", "statement")


def _script(form: str, batch: int, rows: int, commit: str) -> Script:
    """One operation: `rows` rows in statements of `batch`."""
    statements = FORMS[form](batch) * (rows // batch)
    text = statements if commit == "statement" else f"begin;\n{statements}commit;\n"
    return Script(f"{rows} rows", _DRAW + text)


def _variables(batch: int) -> dict[str, str]:
    """The columns of a batch as arrays, for the form that binds them whole."""
    ids = ",".join(str(1_000_000 + at) for at in range(batch))
    return {
        "ids": f"{{{ids}}}",
        "amounts": f"{{{','.join(['42'] * batch)}}}",
        "notes": f"{{{','.join(['sixteen_letters_'] * batch)}}}",
    }


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    rows = one_number(options["rows"], "rows")
    batches = numbers(options["batch"], "batch")
    for batch in batches:
        if rows % batch:
            raise PlanError(
                f"statements of {batch} rows do not make {rows} rows",
                where="--set batch",
                next_step=f"name numbers that divide {rows}, or other --set rows",
            )
    forms, commits = _known(options["form"], FORMS, "form"), _known(options["commit"], COMMITS, "commit")
    arms = [
        Arm(
            f"form {form}, commit {commit}, batch {batch}",
            scripts=[_script(form, batch, rows, commit)],
            variables=_variables(batch) if form == "array" else {},
            levels={"form": form, "commit": commit, "batch": str(batch)},
        )
        for form, commit, batch in itertools.product(forms, commits, batches)
    ]
    return Plan(
        title="insert-size",
        question=STUDY.question,
        study="insert-size",
        kind="sweep",
        factors=["form", "commit", "batch"],
        arms=arms,
        workload=Workload(
            variables={"amount": "42", "note": "sixteen_letters_"},
            setup=[f"create table {TABLE} (id int, amount int, note text)"],
            teardown=[f"drop table {TABLE}"],
        ),
        schedule=Schedule(
            blocks=6 if quick else 15,
            warmup_blocks=1,
            turn_transactions=5 if quick else 10,
            settle_ns=50_000_000,
        ),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05, equal_work=True),
    )


def _known(text: str, known: Iterable[str], where: str) -> list[str]:
    """Those of the known levels that `--set` names."""
    found = words(text, where)
    for value in found:
        if value not in known:
            raise PlanError(
                f"{value!r} is no level of this factor",
                where=f"--set {where}",
                next_step=f"one or several of {', '.join(known)}",
            )
    return found


STUDY = Study(
    name="insert-size",
    question="How many rows should one insert bring, and how many one commit?",
    workload="Each operation inserts 1,000 rows into a narrow table, in statements of BATCH rows, committed at its end "
    "or after each statement: a millisecond of its time is a microsecond a row.",
    targets="PostgreSQL: embedded, or one named by --target",
    source="Guy Harrison: array inserts through JDBC, as those of array fetches (E3)",
    found_there="A gain of about that of array fetch: most of it by 100 rows, more brings little.",
    factors=(
        Factor("batch", "rows of a statement; they divide ROWS", "1,10,100,1000"),
        Factor("commit", "end: once an operation; statement: after each", "end,statement", quick="end"),
        Factor("form", "values, pipeline, array", "values", full="values,pipeline,array"),
        Factor("rows", "rows of an operation", "1000"),
    ),
    make=_plan,
)
