"""`cells watch`: latencies, levels and averages since its start; ranked by importance; only the selected metrics."""

from __future__ import annotations

import itertools
import random

import pytest
from made_recordings import Cells

from dbdyno.base.errors import CellsError
from dbdyno.cells.catalogue import metric
from dbdyno.cells.listing import Reading
from dbdyno.cells.selection import selection_of
from dbdyno.cells.watch import RunningSums, rank_rows, watch_page


def watched(rounds, **more):
    since = RunningSums()
    pages = [watch_page(since, one, other, **more) for one, other in itertools.pairwise(rounds)]
    return pages[-1]


def test_latencies_levels_and_averages_stand_beside_rates():
    rounds = Cells(random.Random(1)).rounds(6)
    page = watched(rounds)
    rows = {(row["metric"], row["cell"]): row for row in page["rows"]}
    latency = rows["CD_IO_TM_R_SM_RQ", "cel01"]
    assert (latency["kind"], latency["unit"]) == ("latency", "us")
    first, last = ({(r.name, r.object): r.value for r in one.columns[0].readings} for one in (rounds[0], rounds[-1]))
    times, requests = (
        sum(last[key] - first[key] for key in first if key[0] == name) for name in ("CD_IO_TM_R_SM", "CD_IO_RQ_R_SM")
    )
    assert latency["average"] == pytest.approx(times / requests)
    assert rows["FC_BY_USED", "cel01"]["now"] == 1000.0
    writes = rows["FL_IO_W", "cel02"]
    assert writes["average"] == pytest.approx(100, rel=0.2)
    assert "CD_IO_TM_R_SM" not in {name for name, _ in rows}


def test_averages_leave_a_restart_out():
    cells = Cells(random.Random(1))
    rounds = cells.rounds(4)
    cells.restart()
    cells.grow(60)
    rounds.append(cells.collect())
    cells.grow(60)
    rounds.append(cells.collect())
    page = watched(rounds)
    assert next(r for r in page["rows"] if r["metric"] == "FL_IO_W")["average"] == pytest.approx(100, rel=0.3)


def test_rank_is_by_meaning_and_not_across_units():
    rows = [
        {"metric": "FC_BY_USED", "cell": "a", "object": "", "now": 1e9, "average": 1e9},
        {"metric": "CD_IO_TM_R_SM_RQ", "cell": "a", "object": "", "now": 900.0, "average": 300.0},
        {"metric": "CD_IO_ERRS", "cell": "a", "object": "", "now": 0.01, "average": 0.01},
        {"metric": "FL_IO_W", "cell": "a", "object": "", "now": 101.0, "average": 100.0},
    ]
    assert [row["metric"] for row in rank_rows(rows)] == ["CD_IO_ERRS", "CD_IO_TM_R_SM_RQ", "FL_IO_W", "FC_BY_USED"]


def reading(name: str, item: str) -> Reading:
    return Reading("c", name, item, 1.0, "", "1", 1)


def test_objects_databases_and_exclusions_pick():
    assert selection_of(item="CD_00_.*").wants(reading("CD_IO_RQ_R_SM", "CD_00_cel01"))
    assert not selection_of(item="CD_00").wants(reading("CD_IO_RQ_R_SM", "CD_00_cel01"))
    of_sales = selection_of(databases="sales, hr")
    assert of_sales.wants(reading("DB_IO_RQ_SM", "SALES"))
    assert of_sales.wants(reading("CG_IO_RQ_SM", "HR.BATCH"))
    assert not of_sales.wants(reading("DB_IO_RQ_SM", "SALES2"))
    assert not of_sales.wants(reading("FL_IO_W", "FLASHLOG"))
    assert not selection_of(exclude="FL_.*").wants(reading("FL_IO_W", "FLASHLOG"))
    with pytest.raises(CellsError) as told:
        selection_of(exclude="(")
    assert told.value.where == "--exclude"


def test_a_mask_of_times_keeps_their_latencies():
    pick = selection_of(mask="CD_IO_TM.*")
    assert pick.wants_name("CD_IO_TM_R_SM_RQ")
    assert selection_of(mask="CD_IO_TM_R_SM").wants_name("CD_IO_TM_R_SM_RQ")
    assert metric("CD_IO_ERRS").counts_errors
