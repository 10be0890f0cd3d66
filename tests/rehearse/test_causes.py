"""Causes found in synthetic catalogs and plans: by schema and case, across versions, and the text if there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbdyno.rehearse.answer import Answer
from dbdyno.rehearse.catalog import Catalog, Relation
from dbdyno.rehearse.cause import Cause, CauseContext
from dbdyno.rehearse.causes import cause_of_answer, cause_of_slowness, read_plan, unexplained_note
from dbdyno.rehearse.decision import Decision
from dbdyno.rehearse.names import named_objects, search_path
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement, Trial
from dbdyno.rehearse.statement import Parameters, Statement

OLD = Catalog(
    150000, indexes={"app.Orders_customer": "CREATE INDEX ..."}, relations={"app.Orders": Relation(9, 1, 1, 5)}
)


def plan(**root: object) -> str:
    return json.dumps([{"Plan": {"Node Type": "Seq Scan", **root}}])


BITMAP = plan(
    **{
        "Node Type": "Bitmap Heap Scan",
        "Relation Name": "Orders",
        "Schema": "app",
        "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "Orders_customer"}],
    }
)
INDEXED = plan(
    **{"Node Type": "Index Scan", "Relation Name": "Orders", "Schema": "app", "Index Name": "Orders_customer"}
)
SCAN = plan(**{"Relation Name": "Orders", "Schema": "app"})


def slow(text: str, old: Catalog, new: Catalog, plans: tuple[str, str] = ("", ""), path: str = "") -> Cause | None:
    decision = Decision(RehearsedStatement(Statement(1, text, calls=1, total_ns=1)), "slower", 2.0, 1.9, 2.1, 1e6, 2e6)
    read = [read_plan(one) if one else None for one in plans]
    grounds = CauseContext(old, new, (read[0], read[1]), search_path((), path or "public"))
    return cause_of_slowness(decision, grounds, lambda name, value, rounds: None)


PARALLEL = plan(**{"Node Type": "Gather", "Plans": [{"Node Type": "Seq Scan", "Relation Name": "Orders"}]})


@pytest.mark.parametrize(
    "plans, without_ns, is_cause",
    [
        ((SCAN, PARALLEL), 1e6, True),
        ((SCAN, PARALLEL), 1.9e6, False),
        ((PARALLEL, PARALLEL), 1e6, False),
        ((PARALLEL, SCAN), 1e6, False),
    ],
    ids=["as fast as the old without workers", "as slow without them", "parallel on both", "parallel on the old only"],
)
def test_a_plan_with_parallel_workers_is_a_cause(plans: tuple[str, str], without_ns: float, is_cause: bool) -> None:
    decision = Decision(
        RehearsedStatement(Statement(1, "select 1", calls=1, total_ns=1)), "slower", 2.0, 1.9, 2.1, 1e6, 2e6
    )
    tried: list[tuple[str, str]] = []

    def trial(name: str, value: str, rounds: int) -> tuple[list[float], list[float]]:
        tried.append((name, value))
        return [2e6 + 1e3 * at for at in range(rounds)], [without_ns + 1e3 * at for at in range(rounds)]

    found = cause_of_slowness(decision, CauseContext(OLD, OLD, (read_plan(plans[0]), read_plan(plans[1]))), trial)
    assert (found is not None and found.code == "parallel plan") == is_cause
    assert (tried == [("max_parallel_workers_per_gather", "0")]) == (plans == (SCAN, PARALLEL))


def other_answer(text: str, old: Catalog, new: Catalog, kind: str = "values") -> Cause:
    trial = Trial(Parameters(text), Answer(), Answer(), kind)  # type: ignore[arg-type]
    return cause_of_answer(text, trial, CauseContext(old, new))


@pytest.mark.parametrize("plan_of", [BITMAP, INDEXED])
def test_an_index_of_another_schema_is_named(plan_of: str) -> None:
    found = slow('select * from app."Orders"', OLD, replace(OLD, indexes={}), (plan_of, SCAN))
    assert found is not None and found.sentence == "index app.Orders_customer does not exist on the new side"
    assert slow('select * from app."Orders"', OLD, OLD, (plan_of, SCAN)) is None


def test_bloat_statistics_and_targets_of_a_table_in_another_schema_are_found() -> None:
    plans = (SCAN, SCAN)
    bloated = replace(OLD, relations={"app.Orders": Relation(9, 1, 100, 5)})
    bare = replace(OLD, relations={"app.Orders": Relation(9, 1, 1, 0)})
    extended = replace(OLD, statistics={"app.s": "CREATE ..."}, statistics_tables={"app.s": "app.Orders"})
    target = replace(OLD, targets={"app.Orders.kind": "1"})
    for old, new, code in (
        (OLD, bloated, "bloat"),
        (OLD, bare, "statistics"),
        (extended, OLD, "statistics"),
        (OLD, target, "target"),
    ):
        found = slow("select 1", old, new, plans)
        assert found is not None and (found.code, "app." in found.sentence) == (code, True)


def test_statistics_that_this_role_may_not_see_are_no_missing_ones() -> None:
    hidden = replace(OLD, relations={"app.Orders": Relation(9, 1, 1, None)})
    assert slow("select 1", OLD, hidden, (SCAN, SCAN)) is None


def test_a_table_that_was_never_analysed_is_not_bloated_for_the_same_rows() -> None:
    unknown = replace(OLD, relations={"app.Orders": Relation(-1, 0, 100, 5)})
    assert slow("select 1", OLD, unknown, (SCAN, SCAN)) is None


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ('select * from app."Paid"', "public", "app.Paid"),
        ('select * from "Paid"', "app, public", "app.Paid"),
        ('select * from "Paid"', "public", "app.Paid"),
        ("select * from both_have", "other, public", "other.both_have"),
        ("select * from both_have", "app, public", ""),
        ("select * from Paid", "public", ""),
    ],
)
def test_a_view_is_found_by_schema_case_and_search_path(text: str, path: str, name: str) -> None:
    views = {"app.Paid": "SELECT 1;", "app.both_have": "SELECT 1;", "other.both_have": "SELECT 1;"}
    old = replace(OLD, views=views)
    new = replace(OLD, views={**views, "app.Paid": "SELECT 2;", "other.both_have": "SELECT 2;"})
    found = slow(text, old, new, path=path)
    assert (found.sentence if found else "") == (f"view {name} has another definition on the new side" if name else "")


def test_a_view_that_another_version_writes_differently_is_the_same_view() -> None:
    old = replace(
        OLD, views={"paid": " SELECT orders.id,\n    orders.amount\n   FROM orders\n  WHERE (orders.id > 1);"}
    )
    new = Catalog(170000, views={"paid": " SELECT id,\n    amount\n   FROM orders\n  WHERE id > 1;"})
    assert slow("select * from paid", old, new) is None
    assert slow("select * from paid", old, replace(new, version=150000)) is not None
    changed = replace(new, views={"paid": " SELECT id,\n    amount\n   FROM orders\n  WHERE id > 2;"})
    assert slow("select * from paid", old, changed) is not None


def test_a_view_over_another_view_of_its_schema_is_found_through_it() -> None:
    old = replace(OLD, views={"app.top": "SELECT * FROM app.inner;", "app.inner": "SELECT 1;"})
    new = replace(old, views={**old.views, "app.inner": "SELECT 2;"})
    found = slow("select * from app.top", old, new)
    assert found is not None and found.sentence == "view app.inner has another definition on the new side"


@pytest.mark.parametrize(("old", "new", "code"), [(60_000, 60_412, "answer"), (60_000, -1, "answer"), (9, 60, "data")])
def test_estimates_of_rows_that_are_near_are_no_other_rows(old: int, new: int, code: str) -> None:
    sides = [replace(OLD, relations={"orders": Relation(rows, 1, 1, 5)}) for rows in (old, new)]
    assert other_answer("select * from orders", *sides).code == code


def test_another_version_of_a_collation_is_named() -> None:
    old = replace(OLD, columns={"words.word": "text collate und-x-icu"}, collation_versions={"und-x-icu": "153.14"})
    new = replace(old, collation_versions={"und-x-icu": "153.121"})
    found = other_answer("select word from words order by word", old, new, "order")
    assert "collation und-x-icu of column words.word has version 153.121 and had 153.14" in found.sentence
    unknown = other_answer("select word from words order by word", old, replace(old, collation_versions={}), "order")
    assert unknown.code == "answer", "a version that is not known is no other one"
    own = other_answer(
        "select a from t order by a",
        replace(OLD, collation="C.UTF-8 C.UTF-8", collation_versions={"": "2.31"}),
        replace(OLD, collation="C.UTF-8 C.UTF-8", collation_versions={"": "2.36"}),
        "order",
    )
    assert "has version 2.36 and had 2.31" in own.sentence


def test_nothing_explains_it_says_what_was_compared_and_what_could_not_be_read() -> None:
    trial = Trial(Parameters("select 1"), Answer(), Answer(), "", (SCAN, INDEXED))
    old = replace(OLD, settings={"work_mem": "4096 kB"})
    new = replace(OLD, settings={"work_mem": "64 kB"}, unread=("extended statistics",))
    said = unexplained_note(trial, CauseContext(old, new))
    assert "the plans differ; 1 settings differ" in said and "not known: extended statistics of the new side" in said
    alike = unexplained_note(replace(trial, plans=(SCAN, SCAN)), CauseContext(OLD, OLD))
    assert alike == "Nothing that was read explains it: the plans are the same; the settings are the same."
    assert "its plan on the new side" in unexplained_note(replace(trial, plans=(SCAN, "")), CauseContext(OLD, OLD))


def test_the_search_path_is_that_of_the_session() -> None:
    assert search_path(['SET search_path TO "App", public'], "public") == ("App", "public")
    assert search_path((), '"$user", public', "app") == ("app", "public")
    assert search_path((), '"$user", public') == ("public",)
    assert named_objects("select o.id from Orders o where o.x = 1", {"orders", "x"}) == ["orders"]
