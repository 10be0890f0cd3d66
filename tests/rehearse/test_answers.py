"""Answers that really differ and those that do not, on synthetic answers: one test for each false alarm in the past."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from dbdyno.rehearse.answer import ROWS_KEPT, Answer, answer_of, difference
from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.measuring import Bench
from dbdyno.rehearse.order import determined_parts, undetermined_reason
from dbdyno.rehearse.rehearsal import rehearse
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.statement import Parameters, Statement

TEXT, FLOAT = 25, 701


def answer(rows: Sequence[Sequence[object]], columns: str, floats: Sequence[int] = ()) -> Answer:
    names = columns.split()
    types = [FLOAT if at in floats else TEXT for at in range(len(names))]
    return answer_of([tuple(str(value).encode() for value in row) for row in rows], names, types, None)


def compared(text: str, columns: str, old: Sequence[Sequence[object]], new: Sequence[Sequence[object]]) -> str:
    sides = answer(old, columns), answer(new, columns)
    return difference(*sides, determined_parts(text, columns.split()))


LIMITED = "select id, status from orders order by status limit 3"


def test_a_limit_may_cut_among_rows_with_equal_keys() -> None:
    old = ((1, "new"), (2, "paid"), (3, "paid"))
    assert compared(LIMITED, "id status", old, ((1, "new"), (4, "paid"), (5, "paid"))) == ""
    assert compared(LIMITED, "id status", old, ((9, "new"), (2, "paid"), (3, "paid"))) == "values", "not at the cut"
    assert compared(LIMITED, "id status", old, ((1, "new"), (2, "new"), (3, "paid"))) == "values", "another key"
    assert compared(LIMITED, "id status", old, ((2, "paid"), (1, "new"), (3, "paid"))) == "order"


def test_an_offset_may_cut_among_rows_with_equal_keys_at_the_begin() -> None:
    text = "select id, status from orders order by status offset 5"
    old = ((1, "new"), (2, "paid"), (3, "paid"))
    assert compared(text, "id status", old, ((7, "new"), (2, "paid"), (3, "paid"))) == ""
    assert compared(text, "id status", old, ((1, "new"), (2, "paid"), (7, "paid"))) == "values"


def test_a_key_that_is_no_column_of_the_answer_leaves_the_last_rows_of_a_limit_open() -> None:
    text = "select id, status from orders order by status, made limit 3"
    old = ((1, "new"), (2, "paid"), (3, "paid"))
    assert compared(text, "id status", old, ((1, "new"), (7, "paid"), (8, "paid"))) == ""


def test_of_distinct_on_only_the_columns_of_order_by_are_determined() -> None:
    text = "select distinct on (customer) customer, made, id from orders order by customer, made desc"
    old = ((1, "2020", 7), (2, "2021", 8))
    assert compared(text, "customer made id", old, ((1, "2020", 9), (2, "2021", 8))) == ""
    assert compared(text, "customer made id", old, ((1, "2019", 7), (2, "2021", 8))) == "values"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select sum(x) from (select x from t order by status limit 10) s", "LIMIT in a subquery"),
        ("with s as (select x from t limit 3) select * from s order by x", "LIMIT in a subquery"),
        ("insert into t select * from s order by x limit 3 returning x", "LIMIT in a subquery"),
        ("select * from (select distinct on (a) a, b from t order by a) s", "DISTINCT ON in a subquery"),
        ("select array_agg(x) from t", "array_agg without ORDER BY"),
        ("select string_agg(x, ',') from t group by y", "string_agg without ORDER BY"),
        ("select json_agg(x), 1 from t", "json_agg without ORDER BY"),
        ("select json_object_agg(a, b) from t", "json_object_agg without ORDER BY"),
        ("select jsonb_agg(x) from t", "jsonb_agg without ORDER BY"),
        ("select array(select x from t)", "array without ORDER BY"),
        ("select id, row_number() over (order by status) from t", "row_number, which distinguishes"),
        ("select id, lag(x) over (order by status) from t", "lag, which distinguishes"),
        ("select * from t tablesample system (10)", "TABLESAMPLE"),
        ("select * from t order by id fetch first 3 rows only", ""),
        ("select * from t offset 3", "OFFSET without ORDER BY"),
        ("select pid, state from pg_stat_activity", "pg_stat_activity, which describes the server"),
        ("select ctid, id from t", "ctid, which depends on where"),
        ("select pg_total_relation_size('t')", "pg_total_relation_size, whose value differs"),
        ("select * from t where exists (select 1 from u where u.t = t.id limit 1)", ""),
        ("select array_agg(x order by x), string_agg(x, ',' order by x) from t", ""),
        ("select array(select x from t order by x), array[1, 2] from t", ""),
        ("select rank() over (order by status), sum(x) over (order by status) from t", ""),
        ("select percentile_cont(0.5) within group (order by x), count(*) from t", ""),
        ("select * from t order by status limit 10", ""),
    ],
)
def test_what_a_statement_leaves_open_is_named(text: str, reason: str) -> None:
    found = undetermined_reason(text)
    assert found.startswith(reason) and bool(found) == bool(reason), found


def test_last_digits_in_more_rows_than_are_kept_are_no_difference() -> None:
    dice = random.Random(3)
    count = ROWS_KEPT + 1
    values = [dice.uniform(-1e6, 1e6) for _ in range(count)]
    old = answer([(at, repr(value)) for at, value in enumerate(values)], "id x", [1])
    near = [(at, repr(value * (1 + 2e-16 * dice.randint(-2, 2)))) for at, value in enumerate(values)]
    dice.shuffle(near)
    assert difference(old, answer(near, "id x", [1])) == ""
    moved = [(at, repr(values[(at + 1) % count])) for at in range(count)]
    assert difference(old, answer(moved, "id x", [1])) == "values", "the same numbers in other rows"
    one = [(at, repr(value + 1000 * (at == 7))) for at, value in enumerate(values)]
    assert difference(old, answer(one, "id x", [1])) == "values"
    keys = [(at + (at == 7), repr(value)) for at, value in enumerate(values)]
    assert difference(old, answer(keys, "id x", [1])) == "values"
    assert difference(old, answer([*near[1:], (near[0][0], "NaN")], "id x", [1])) == "values"


def test_keys_after_a_floating_point_one_decide_only_among_its_equals() -> None:
    text = "select x, id from t order by x, id"
    old, new = ((f"{0.1 + 0.2}", 1), ("0.3", 2)), (("0.3", 2), ("0.30000000000000004", 1))
    sides = answer(old, "x id", [0]), answer(new, "x id", [0])
    assert difference(*sides, determined_parts(text, ("x", "id"))) == ""


class Answering:
    """A side that repeats the same answers in the same order."""

    def __init__(self, name: str, *values: str) -> None:
        self.name, self.values, self.asked = name, values, 0

    @contextlib.contextmanager
    def transaction(self, statement: Statement) -> Iterator[None]:
        yield

    def answer(self, parameters: Parameters) -> Answer:
        self.asked += 1
        return answer([(self.values[(self.asked - 1) % len(self.values)],)], "x")

    def has_written(self) -> bool:
        return False

    def execute(self, parameters: Parameters, *, undo: bool) -> int:
        return 1_000_000

    def close(self) -> None: ...


def rehearsed(text: str, old: Answering, new: Answering) -> RehearsedStatement:
    item = RehearsedStatement(Statement(1, text, calls=1, total_ns=1, samples=(Parameters(text),)))
    rehearse([item], Bench(cast(Side, old), cast(Side, new), Budget(0.1), random.Random(1), 0.1))
    return item


def test_a_new_server_that_changes_its_answer_does_so_by_right_too() -> None:
    item = rehearsed("select f()", Answering("old", "a"), Answering("new", "b", "a"))
    assert item.differing_trial is None
    assert item.undetermined == "the new server itself answers differently the second time"
    steady = rehearsed("select f()", Answering("old", "a"), Answering("new", "b"))
    assert steady.differing_trial is not None and steady.undetermined == ""


def test_answers_that_are_alike_count_as_compared_whatever_the_statement_leaves_open() -> None:
    text = "select x from t limit 1"
    assert rehearsed(text, Answering("old", "a"), Answering("new", "a")).undetermined == ""
    differing = rehearsed(text, Answering("old", "a"), Answering("new", "b"))
    assert (differing.differing_trial, differing.undetermined) == (None, "LIMIT without ORDER BY")
