"""The output of a modelled cell is read back to the same values; its counters are consistent."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from rig_help import any_rack, cell, rack

from dbdyno.cells.catalogue import metric
from dbdyno.cells.documents import read_any
from dbdyno.cells.listing import Reading
from dbdyno.cells.numbers import last_digit_value
from dbdyno.cells.rates import changes
from dbdyno_rig.cell import Cell
from dbdyno_rig.language import KINDS
from fresh_dice import fresh_dice


def truth(asked: Cell) -> dict[tuple[str, str], tuple[float, str]]:
    sample = asked.rack.samples[asked.number][-1]
    return {(row[2], row[1]): (row[3], row[4]) for row in sample.rows}


@pytest.mark.soak
def test_xml_is_read_back_to_every_digit_text_to_its_printed_ones():
    dice = fresh_dice()
    for _ in range(6):
        asked = Cell(any_rack(dice), 0)
        expected = truth(asked)
        xml = read_any(asked.answer("list metriccurrent", xml=True)[0])
        assert xml.unread == xml.errors == []
        assert {r.at_ns for r in xml.readings} == {asked.rack.samples[0][-1].at_ns}
        assert {(r.name, r.object): r.value for r in xml.readings} == {
            key: value for key, (value, _) in expected.items()
        }
        text = read_any(asked.answer("list metriccurrent")[0], asked.name)
        assert text.unread == text.errors == []
        assert len(text.readings) == len(expected)
        for reading in text.readings:
            value, unit = expected[reading.name, reading.object]
            assert reading.unit == unit
            assert abs(reading.value - value) <= last_digit_value(reading.text) / 2 * (1 + 1e-9)
        check_detail(asked, expected)


def check_detail(asked: Cell, expected: dict[tuple[str, str], tuple[float, str]]) -> None:
    detail = read_any(asked.answer("list metriccurrent detail")[0])
    assert detail.unread == detail.errors == []
    rows = {(r.name, r.object): r for r in detail.readings}
    assert set(rows) == set(expected)
    assert {one.at_ns for one in rows.values()} == {asked.rack.samples[asked.number][-1].at_ns}


def test_every_kind_of_object_is_read_back_from_detail_and_xml():
    asked = cell(seconds=1)
    assert asked.answer("alter iormplan dbplan=((name=ORCL,share=2),(name=other,share=1))")[1] == 0
    assert asked.answer("create threshold FL_RQ_W comparison='>', warning=1.5")[1] == 0
    asked.rack.advance(60 * 10**9)
    for kind in sorted(set(KINDS) - {"metriccurrent"}):
        detail = read_any(asked.answer(f"list {kind} detail")[0])
        document = read_any(asked.answer(f"list {kind} attributes all detail", xml=True)[0])
        assert detail.unread == detail.errors == document.unread == document.errors == []
        if kind == "metrichistory":
            assert len(detail.readings) == len(document.readings) > 0
            continue
        # What an alert was about is rounded in text.
        plain = [{k: told(v) for k, v in one.items() if k not in ("", "metricValue") and v} for one in document.details]
        shown = [{k: v for k, v in one.items() if k != "metricValue"} for one in detail.details]
        assert [{k: v for k, v in one.items() if v} for one in shown] == plain
        assert plain
    assert read_any(asked.answer("list cell", xml=True)[0]).started_ns == {"cell01": asked.rack.began_ns}


def told(text: str) -> str:
    """Return a time as text has it; XML gives it in ms."""
    if text.isdigit() and len(text) == 13:
        return datetime.fromtimestamp(int(text) / 1000, UTC).isoformat()
    return text


@pytest.mark.soak
def test_identities_hold_in_what_is_printed():
    dice = fresh_dice()
    for _ in range(6):
        made = any_rack(dice)
        for number in range(len(made.names)):
            found = read_any(Cell(made, number).answer("list metriccurrent")[0])
            sums = {(r.name, r.object): r.value for r in found.readings}
            log = {name: value for (name, item), value in sums.items() if item == "FLASHLOG"}
            assert log["FL_IO_W"] == log["FL_DISK_FIRST"] + log["FL_FLASH_FIRST"]
            skipped = sum(v for k, v in log.items() if k.startswith("FL_IO_W_SKIP_"))
            assert log["FL_RQ_W"] == log["FL_IO_W"] + skipped
            cache = {name: value for (name, item), value in sums.items() if item == "FLASHCACHE"}
            parts = ("FIRST", "OVERWRITE", "POPULATE")
            assert cache["FC_IO_RQ_W"] == sum(cache[f"FC_IO_RQ_W_{part}"] for part in parts)


def test_a_rate_is_the_difference_over_the_cells_own_minute_to_the_printed_digit():
    made = rack(seconds=200)
    for number, samples in enumerate(made.samples):
        for before, after in itertools.pairwise(list(samples)[1:]):
            assert after.at_ns - before.at_ns == 60 * 10**9
            compared = 0
            found = changes(readings(before, number), readings(after, number))
            rates = {(row[2], row[1]): row[3] for row in after.rows}
            for change in found:
                rate = rates.get((f"{change.name}_SEC", change.object))
                if rate is not None:
                    assert abs((change.per_s or 0.0) - rate) < 1e-9 * max(1.0, rate)
                    compared += rate > 0
            assert compared > 20


def readings(sample, number: int) -> list[Reading]:
    return [Reading(str(number), row[2], row[1], row[3], row[4], "", 0, sample.at_ns) for row in sample.rows]


def test_cells_collect_at_seconds_of_their_own_and_not_between():
    made = rack(seconds=59)
    times = [samples[-1].at_ns for samples in made.samples]
    assert len(set(times)) == len(times)
    first = Cell(made, 0)
    before = first.answer("list metriccurrent")
    made.advance(5 * 10**9)
    assert first.answer("list metriccurrent") == before
    made.advance(60 * 10**9)
    assert first.answer("list metriccurrent") != before


@pytest.mark.soak
def test_history_holds_the_last_minutes_in_order_and_forgets_the_rest():
    asked = cell(seconds=20 * 60)
    rows = read_any(asked.answer("list metrichistory FL_RQ_W")[0]).readings
    times = [r.at_ns for r in rows]
    assert len(rows) == 15
    assert times == sorted(times)
    values = [r.value for r in rows]
    assert values == sorted(values)


def test_the_same_seed_gives_the_same_answers():
    first, second = (cell(seed=11, seconds=70) for _ in range(2))
    text = "list metriccurrent attributes name, metricObjectName, metricValue"
    assert first.answer(text) == second.answer(text)


def test_what_is_modelled_has_the_kind_and_the_unit_that_the_catalogue_knows():
    for row in cell().rack.samples[0][-1].rows:
        known = metric(row[2])
        assert (known.unit, known.kind) == (row[4], row[5]), row[2]
