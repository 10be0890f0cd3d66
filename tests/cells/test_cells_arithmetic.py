"""Sums, weighted latencies, differences and rates: correct where other tools are wrong."""

from __future__ import annotations

import pytest

from dbdyno.cells.aggregate import PASSED_BY, combine, own_names, with_cell_placeholder
from dbdyno.cells.listing import Reading, read_text
from dbdyno.cells.rates import changes, latencies, totals
from fresh_dice import fresh_dice

MINUTE = 60 * 10**9


def reading(cell: str, name: str, item: str, value: float, at_ns: int | None = None) -> Reading:
    return Reading(cell, name, item, value, "", str(value), 1, at_ns)


def test_counters_are_summed_over_the_objects_of_a_cell():
    text = "c1: CD_IO_RQ_R_SM CD_00 10 IO requests\nc1: CD_IO_RQ_R_SM CD_01 5 IO requests\n"
    (row,) = combine(read_text(text).readings, "cell")
    assert (row.value, row.n, row.rule, row.cell) == (15.0, 2, "sum", "c1")


def test_percentages_and_loads_have_a_spread_and_no_sum():
    rows = [reading("c1", "CL_CPUT", "", 10.0), reading("c2", "CL_CPUT", "", 90.0)]
    (row,) = combine(rows, "all")
    assert (row.value, row.low, row.mean, row.high) == (None, 10.0, 50.0, 90.0)


def test_a_latency_is_weighted_by_the_requests_of_its_minute():
    rows = [
        reading("c1", "CD_IO_TM_R_SM_RQ", "CD_00", 1000.0),
        reading("c1", "CD_IO_RQ_R_SM_SEC", "CD_00", 300.0),
        reading("c1", "CD_IO_TM_R_SM_RQ", "CD_01", 9000.0),
        reading("c1", "CD_IO_RQ_R_SM_SEC", "CD_01", 1.0),
    ]
    row = combine(rows, "cell")[0]
    assert row.value == pytest.approx((300 * 1000 + 9000) / 301)
    assert row.mean == 5000  # what a plain mean would say


def test_a_latency_without_its_requests_has_no_single_number_and_says_why():
    rows = [reading("c1", "CD_IO_TM_R_SM_RQ", f"CD_0{at}", 1000.0 * at) for at in range(3)]
    (row,) = combine(rows, "cell")
    assert row.value is None
    assert row.note == "needs CD_IO_RQ_R_SM_SEC of the same objects in the listing"


def test_the_flash_logs_latency_is_weighted_with_the_redo_writes_of_the_databases():
    rows = [reading(cell, "FL_IO_TM_W_RQ", "FLASHLOG", us) for cell, us in (("c1", 300), ("c2", 900))]
    rates = [
        reading("c1", "DB_FL_IO_RQ_SEC", "ORCL", 50.0),
        reading("c1", "DB_FL_IO_RQ_SEC", "TEST", 150.0),
        reading("c2", "DB_FL_IO_RQ_SEC", "ORCL", 100.0),
    ]
    (row,) = combine(rows, "all", rates)
    assert row.value == pytest.approx((300 * 200 + 900 * 100) / 300)
    (row,) = combine(rows, "all", rates[:2])
    assert row.note == "needs DB_FL_IO_RQ_SEC of the cell's databases in the listing"
    asked = [one._replace(name="FL_RQ_TM_W_RQ") for one in rows]
    served = [reading(cell, name, "FLASHLOG", 7.0) for cell in ("c1", "c2") for name in PASSED_BY]
    (row,) = combine(asked, "all", [*rates, *served])
    assert row.value == pytest.approx((300 * 200 + 900 * 100) / 300)
    passed = [*rates, *served[:-1], served[-1]._replace(value=8.0)]
    (row,) = combine(asked, "all", passed)
    assert row.value is None
    assert row.note.startswith("some redo writes bypassed the flash log and have no rate")


def test_a_latency_of_small_and_large_together_has_both_as_its_requests():
    rows = [reading("c1", "DB_FD_IO_TM_RQ", db, us) for db, us in (("A", 100.0), ("B", 400.0))]
    rates = [
        reading("c1", f"DB_FD_IO_RQ_{size}_SEC", db, value)
        for db, size, value in (
            ("A", "SM", 1.0),
            ("A", "LG", 2.0),
            ("B", "SM", 4.0),
            ("B", "LG", 5.0),
        )
    ]
    assert combine(rows, "cell", rates)[0].value == pytest.approx((100 * 3 + 400 * 9) / 12)
    counters = ("DB_FD_IO_TM", "DB_FD_IO_RQ_SM", "DB_FD_IO_RQ_LG")
    before = [reading("c1", name, "A", 0.0, 0) for name in counters]
    after = [reading("c1", name, "A", v, MINUTE) for name, v in zip(counters, (900.0, 1.0, 2.0), strict=True)]
    (row,) = latencies(changes(before, after))
    assert (row.name, row.value, row.requests) == ("DB_FD_IO_TM_RQ", 300.0, 3.0)


def test_every_latency_of_the_catalogue_has_its_requests():
    from dbdyno.cells.catalogue import metric, names, request_rates

    known = set(names())
    weighted = [name for name in names() if metric(name).rule == "weighted"]
    assert [name for name in weighted if not request_rates(name)[0]] == []
    for name in weighted:
        assert set(request_rates(name)[0]) <= known, name


def test_objects_that_bear_the_name_of_their_cell_stand_in_one_row():
    rows = [
        reading(host, name, item.format(own), 1.0)
        for host, own in (("10.0.0.1", "exa1cel01"), ("10.0.0.2", "exa1cel02"))
        for name, item in (
            ("CD_IO_LOAD", "CD_00_{}"),
            ("CD_IO_LOAD", "FD_00_{}"),
            ("GD_IO_ERRS", "DATA_CD_00_{}"),
            ("CL_TEMP", "{}"),
            ("FL_IO_W", "FLASHLOG"),
        )
    ]
    names = own_names(rows)
    assert names == {"10.0.0.1": "exa1cel01", "10.0.0.2": "exa1cel02"}
    assert {r.object for r in with_cell_placeholder(rows, names)} == {
        "CD_00_<cell>",
        "FD_00_<cell>",
        "DATA_CD_00_<cell>",
        "<cell>",
        "FLASHLOG",
    }
    assert own_names([reading("c1", "CD_IO_LOAD", "CD_00", 1.0)]) == {}
    mixed = [reading("c1", "CD_IO_LOAD", item, 1.0) for item in ("CD_00_a", "CD_00_b")]
    assert own_names(mixed) == {}


def test_one_value_stays_as_it_is_whatever_its_rule():
    (row,) = combine([reading("c1", "CD_IO_ST_RQ", "CD_00", 7.0)], "both")
    assert row.value == 7.0


def test_sums_do_not_depend_on_how_cells_and_objects_are_taken():
    dice = fresh_dice()
    rows = [
        reading(f"c{c}", "GD_IO_RQ_W_SM", f"GD_{o}", float(dice.randrange(10**12))) for c in range(5) for o in range(7)
    ]
    whole = combine(rows, "all")[0].value
    for by in ("cell", "object", "both"):
        assert sum(row.value or 0 for row in combine(rows, by)) == whole


def test_a_rate_is_the_difference_over_the_cells_own_times():
    before = [
        reading("c1", "FL_IO_W", "FLASHLOG", 1000, 0),
        reading("c2", "FL_IO_W", "FLASHLOG", 0, 9),
    ]
    after = [
        reading("c1", "FL_IO_W", "FLASHLOG", 7000, MINUTE),
        reading("c2", "FL_IO_W", "FLASHLOG", 600, 9 + 2 * MINUTE),
    ]
    one, two = changes(before, after)
    assert (one.delta, one.per_s, two.per_s) == (6000, 100.0, 5.0)
    assert totals([one, two], "object")["FL_IO_W", "", "FLASHLOG"] == (6600, 105.0)


def test_not_refreshed_is_told_from_zero():
    same = [reading("c1", "FL_IO_W", "FLASHLOG", 5, MINUTE)]
    (change,) = changes(same, same)
    assert (change.verdict, change.delta) == ("not refreshed", None)
    (change,) = changes(same, [reading("c1", "FL_IO_W", "FLASHLOG", 5, 2 * MINUTE)])
    assert (change.verdict, change.delta, change.per_s) == ("ok", 0.0, 0.0)


def test_one_counter_that_fell_is_a_restart_of_its_cell_and_of_no_other():
    before = [
        reading("c1", "FL_IO_W", "FLASHLOG", 500, 0),
        reading("c1", "FC_IO_RQ_R", "FLASHCACHE", 5, 0),
        reading("c2", "FL_IO_W", "FLASHLOG", 500, 0),
    ]
    after = [
        reading("c1", "FL_IO_W", "FLASHLOG", 20, MINUTE),
        reading("c1", "FC_IO_RQ_R", "FLASHCACHE", 9, MINUTE),
        reading("c2", "FL_IO_W", "FLASHLOG", 501, MINUTE),
    ]
    verdicts = {(c.cell, c.name): (c.verdict, c.delta) for c in changes(before, after)}
    assert verdicts["c1", "FL_IO_W"] == ("reset", None)
    assert verdicts["c1", "FC_IO_RQ_R"] == ("reset", None)
    assert verdicts["c2", "FL_IO_W"] == ("ok", 1)


def test_objects_that_come_and_go_are_named():
    before = [reading("c1", "GD_IO_RQ_W_SM", "OLD", 5, 0)]
    after = [reading("c1", "GD_IO_RQ_W_SM", "NEW", 5, MINUTE)]
    assert [(c.object, c.verdict) for c in changes(before, after)] == [
        ("NEW", "new"),
        ("OLD", "gone"),
    ]


def test_without_times_there_is_a_difference_and_no_rate():
    (change,) = changes([reading("c", "FL_IO_W", "F", 5)], [reading("c", "FL_IO_W", "F", 9)])
    assert (change.verdict, change.delta, change.per_s) == ("no time", 4, None)


def test_latency_between_two_collections_is_time_over_requests():
    def moment(at_ns: int, times: tuple[int, int], requests: tuple[int, int]) -> list[Reading]:
        return [
            reading("c1", name, f"CD_0{disk}", value[disk], at_ns)
            for disk in range(2)
            for name, value in (("CD_IO_TM_W_SM", times), ("CD_IO_RQ_W_SM", requests))
        ]

    found = changes(moment(0, (0, 0), (0, 0)), moment(MINUTE, (3000, 900), (10, 1)))
    assert [row.value for row in latencies(found)] == [300.0, 900.0]
    (cell,) = latencies(found, over="cell")
    assert (cell.value, cell.requests, cell.name) == (3900 / 11, 11, "CD_IO_TM_W_SM_RQ")
