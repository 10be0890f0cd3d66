"""Two recordings compared: real differences are found, equal values are not reported, and unlike ones are refused."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_recordings import Cells, kept

from dbdyno.base.errors import CellsError
from dbdyno.cells.diff import diff_page
from dbdyno.cells.intervals import intervals_of, refreshed_rounds
from dbdyno.cli.main import cli
from dbdyno.judge.cells_page import Recording, compare_page, differences, recordings
from dbdyno.judge.cells_rates import Row, compare

FOUND = ("worse", "better", "more", "less")


def dice(seed: int | None = None) -> random.Random:
    """Return a random generator; its seed is random unless a test needs one fixed outcome."""
    seed = random.randrange(2**32) if seed is None else seed
    print(f"seed {seed}")
    return random.Random(seed)


def side(name: str, rounds, **facts) -> Recording:
    return Recording(name, intervals_of(rounds), facts, facts)


def page(one, other, **more):
    return compare_page(side("before", one), side("after", other), **more)


def whole(rows: list[Row]) -> dict[str, Row]:
    return {row.label: row for row in rows if not row.cell}


def test_a_slower_disk_is_worse_and_a_smaller_share_is_less():
    chance = dice(20261121)
    before = Cells(chance).rounds(20)
    after = Cells(chance, latency_us=300, flash_share=0.02).rounds(30)
    found = whole(compare(intervals_of(before), intervals_of(after)))
    assert found["CD_IO_TM_R_SM_RQ"].decision == "worse"
    assert found["CD_IO_TM_R_SM_RQ"].ratio == pytest.approx(1.5, rel=0.1)
    assert found["flash first, of redo writes"].decision == "less"
    assert found["CD_IO_ERRS"].decision == "none in either"


def test_one_slow_disk_is_named_and_no_other():
    chance = dice(20261121)
    cells = [Cells(chance), Cells(chance)]
    before = cells[0].rounds(20)
    slow = cells[1]
    rounds = [slow.rounds(0)[0]]
    for _ in range(20):
        slow.grow(60)
        slow.sums["cel02", "CD_IO_TM_R_SM", "CD_01_cel02"] += 400 * 50 * 60
        rounds.append(slow.collect())
    model = page(before, rounds)
    told = [row for row in model["rows"] if row["cell"] and row["decision"] in FOUND]
    assert {(row["cell"], row["object"]) for row in told} == {("cel02", "CD_01_cel02"), ("cel02", "")}
    (objects,) = [s for s in model["sections"] if s["name"] == "objects"]
    (row,) = objects["tables"][0]["rows"]
    assert (row["decision"], row["many"]) == ("worse", "2 of 8")
    assert row["surest"].startswith("cel02")


@pytest.mark.soak
def test_two_recordings_of_one_load_differ_no_oftener_than_the_nominal_rate():
    """False discoveries over whole pages: any finding at all among the rows over all cells, and
    among single cells and objects, in at most 5 % of pairs each."""
    chance = dice()
    pairs, alarms = 100, [0, 0]
    for _ in range(pairs):
        rows = compare(*(intervals_of(Cells(chance, wobble=0.2).rounds(12)) for _ in range(2)))
        told = [row for row in rows if row.decision in FOUND]
        alarms[0] += any(not row.cell for row in told)
        alarms[1] += any(bool(row.cell) for row in told)
    border = pairs * 0.05 + 3 * math.sqrt(pairs * 0.05 * 0.95)  # three binomial errors
    assert max(alarms) <= border, alarms


def test_lengths_and_intervals_may_differ():
    chance = dice(20261121)
    before = Cells(chance).rounds(30, every_s=60)
    after = Cells(chance, writes_per_s=200).rounds(9, every_s=300)
    row = whole(compare(intervals_of(before), intervals_of(after)))["FL_IO_W"]
    assert row.decision == "more"
    assert row.ratio == pytest.approx(2, rel=0.15)


def test_a_rate_is_what_first_and_last_collection_give():
    """The same number as `cells diff` of the two ends, however the rounds lay between."""
    chance = dice()
    cells = Cells(chance)
    rounds = [cells.rounds(0)[0]]
    for _ in range(12):
        cells.grow(chance.randint(30, 400))
        rounds.append(cells.collect())
    ends = diff_page(rounds[0], rounds[-1], by="object")
    per_s = {row["metric"]: row["per_s"] for row in ends["rows"] if row["object"] == "FLASHLOG"}
    latency = {row["metric"]: row["value"] for row in ends["latencies"] if not row["cell"]}
    log = diff_page(rounds[0], rounds[-1])["flash_log"]
    found = whole(compare(intervals_of(rounds), intervals_of(rounds)))
    for name in ("FL_IO_W", "FL_DISK_FIRST", "FL_FLASH_FIRST"):
        assert found[name].a.value == pytest.approx(per_s[name], rel=1e-12)
    mean = sum(v * r["requests"] for v, r in zip(latency.values(), ends["latencies"], strict=True))
    requests = sum(row["requests"] for row in ends["latencies"])
    assert found["CD_IO_TM_R_SM_RQ"].a.value == pytest.approx(mean / requests, rel=1e-12)
    share = found["flash first, of redo writes"]
    assert (share.a.above, share.a.below) == (log["flash_first"], log["writes"])


def test_a_restart_costs_its_interval_and_is_told():
    chance = dice(20261121)
    cells = Cells(chance)
    rounds = cells.rounds(10)
    cells.restart()
    for _ in range(10):
        cells.grow(60)
        rounds.append(cells.collect())
    model = page(Cells(chance).rounds(20), rounds)
    (lost,) = [s for s in model["sections"] if s["name"] == "lost"]
    assert [(r["recording"], r["cell"], r["intervals"]) for r in lost["tables"][0]["rows"]] == [
        ("after", "cel01", 1),
        ("after", "cel02", 1),
    ]
    assert "was restarted" in lost["tables"][0]["rows"][0]["why"]
    rate = next(r for r in model["rows"] if r["metric"] == "FL_IO_W" and not r["cell"])
    assert rate["second_rounds"] == 19
    assert rate["decision"] in ("same", "cannot tell")


def test_a_service_that_began_anew_is_seen_when_its_counters_have_passed_the_old_ones(
    tmp_path: Path,
):
    cells = Cells(dice(), names=("cel01",))
    rounds = cells.rounds(1)
    cells.restart()
    cells.grow(6000)
    rounds.append(cells.collect())
    run = kept(tmp_path / "rec", rounds)
    one, _ = recordings((run, run), ("a", "b"))
    assert dict(one.found.lost) == {("cel01", "reset"): 1}


def test_a_cell_that_is_silent_costs_its_own_rounds_and_those_of_the_sum():
    cells = Cells(dice())
    rounds = cells.rounds(10)
    for _ in range(3):
        cells.grow(60)
        rounds.append(cells.collect(without=("cel02",)))
    rounds += cells.rounds(9)[1:]
    found = compare(intervals_of(rounds), intervals_of(Cells(dice()).rounds(12)))
    log = {row.cell: row.a.rounds for row in found if row.name == "FL_IO_W"}
    assert log == {"": 18, "cel01": 22, "cel02": 18}


def test_rounds_faster_than_the_cells_collect_are_put_together():
    cells = Cells(dice())
    rounds = []
    for _ in range(5):
        cells.grow(60)
        rounds += [cells.collect(), cells.collect(), cells.collect()]
    assert refreshed_rounds(rounds) == rounds[::3]
    assert not intervals_of(rounds).lost


def test_a_cell_that_collects_no_more_does_not_stop_the_others():
    cells = Cells(dice())
    rounds = []
    stale = None
    for _ in range(9):
        cells.grow(60)
        one = cells.collect()
        stale = stale or one.columns[1]
        one.columns[1] = stale
        rounds.append(one)
    found = intervals_of(rounds)
    assert found.count == 2
    assert dict(found.lost) == {("cel02", "not refreshed"): 2}


def test_other_cells_are_not_comparable_and_are_named():
    chance = dice()
    model = page(Cells(chance).rounds(8), Cells(chance, names=("cel01", "cel09")).rounds(8))
    assert model["verdict"]["word"] == "not comparable"
    assert {row["decision"] for row in model["rows"]} == {"not comparable"}
    assert any("cells differ" in w["text"] for w in model["warnings"])
    (row,) = next(s for s in model["sections"] if s["name"] == "configuration")["tables"][0]["rows"]
    assert (row["first"], row["second"]) == ("cel01, cel02", "cel01, cel09")


def test_of_three_cells_and_two_the_sums_are_of_those_that_both_have():
    chance = dice(20261121)
    three = Cells(chance, names=("cel01", "cel02", "cel03")).rounds(12)
    model = page(three, Cells(chance).rounds(12), decide=True)
    row = next(r for r in model["rows"] if r["metric"] == "FL_RQ_W" and not r["cell"])
    assert row["ratio"] == pytest.approx(1, abs=0.15)
    assert any("cells that both have: cel01, cel02" in w["text"] for w in model["warnings"])


def test_racks_that_share_no_cell_are_compared_whole():
    chance = dice(20261121)
    one, other = (Cells(chance, names=(f"{c}1", f"{c}2")).rounds(12) for c in "ab")
    rows = page(one, other, decide=True)["rows"]
    assert {row["cell"] for row in rows} == {""}
    assert any(row["metric"] == "CD_IO_TM_R_SM_RQ" and row["ratio"] for row in rows)


def test_other_software_is_not_comparable_unless_that_is_the_question():
    chance = dice()
    one, other = Cells(chance).rounds(8), Cells(chance).rounds(8)
    sides = [
        side("a", one, cel01={"cell.releaseVersion": "11.2.3.2.0"}, cel02={}),
        side("b", other, cel01={"cell.releaseVersion": "12.1.2.1.0"}, cel02={}),
    ]
    assert differences(*sides) == [
        {"what": "cell.releaseVersion", "cell": "cel01", "first": "11.2.3.2.0", "second": "12.1.2.1.0"}
    ]
    assert compare_page(*sides)["verdict"]["word"] == "not comparable"
    assert compare_page(*sides, decide=True)["verdict"]["word"] != "not comparable"


def test_a_plan_that_changed_during_a_recording_is_told(tmp_path: Path):
    cells = Cells(dice())
    first, last = ({"cel01": {"iormplan.dbPlan": plan}} for plan in ("", "name=x,flashLog=off"))
    changed = kept(tmp_path / "a", cells.rounds(6), configuration={"first": first, "last": last})
    steady = kept(tmp_path / "b", cells.rounds(6), configuration={"first": last, "last": last})
    found = differences(*recordings((changed, steady), ("a", "b")))
    assert [row["what"] for row in found] == ["iormplan.dbPlan, changed during a"]


def test_a_recording_without_facts_is_compared_and_says_so():
    chance = dice()
    model = page(Cells(chance).rounds(8), Cells(chance).rounds(8))
    assert sum("has no facts about its cells" in w["text"] for w in model["warnings"]) == 2


def test_the_same_cells_by_other_addresses_are_the_same(tmp_path: Path):
    chance = dice()
    runs = []
    for at, port in enumerate((2201, 2301)):
        names = tuple(f"127.0.0.1:{port + number}" for number in range(2))
        facts = {name: {"cell.name": f"cel0{number}"} for number, name in enumerate(names)}
        rounds = Cells(chance, names=names).rounds(7)
        runs.append(kept(tmp_path / f"r{at}", rounds, configuration={"first": facts}))
    one, other = recordings((runs[0], runs[1]), ("a", "b"))
    assert one.found.cells == other.found.cells == ["cel00", "cel01"]
    assert not differences(one, other)


def test_three_rounds_are_too_few_and_what_to_do_is_said():
    chance = dice()
    model = page(Cells(chance).rounds(3), Cells(chance, latency_us=900).rounds(3))
    assert model["verdict"]["word"] == "cannot tell"
    assert {row["decision"] for row in model["rows"]} <= {"cannot tell", "none in either"}
    assert sum("too few" in w["text"] for w in model["warnings"]) == 2


def test_the_flash_log_has_its_counts_shares_both_intervals_and_reasons():
    chance = dice(20261121)
    model = page(Cells(chance).rounds(10), Cells(chance, flash_share=0.02).rounds(10))
    (log,) = [s for s in model["sections"] if s["name"] == "flash_log"]
    counts = {row["what"].strip(): row for row in log["tables"][0]["rows"]}
    first = counts["disk first"]["first"] + counts["flash first"]["first"]
    assert counts["served by the flash log"]["first"] == first
    assert counts["busy"]["first"] == 2 * 10 * 2
    share = log["tables"][1]["rows"][0]
    assert share["low"] < share["value"] < share["high"]
    assert share["low_independent"] < share["value"] < share["high_independent"]
    assert log["notes"] == []
    words = next(s for s in model["sections"] if s["name"] == "words")["notes"]
    assert any(text.startswith("Flash was first in 3.") for text in words)


def test_counters_of_several_moments_are_told():
    cells = Cells(dice())
    cells.rounds(0)
    rounds = []
    for _ in range(8):
        cells.grow(60)
        cells.sums["cel01", "FL_IO_W", "FLASHLOG"] += 3
        rounds.append(cells.collect())
    model = page(rounds, rounds)
    (log,) = [s for s in model["sections"] if s["name"] == "flash_log"]
    assert "different moments" in log["notes"][0]


def run(*words: object):
    found = CliRunner().invoke(cli, [str(word) for word in words])
    if isinstance(found.exception, CellsError):
        raise found.exception
    return found


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    chance = dice(20261121)
    kept(tmp_path / "before", Cells(chance).rounds(10))
    kept(tmp_path / "after", Cells(chance, latency_us=500).rounds(12))
    return tmp_path / "before", tmp_path / "after"


def test_the_command_tells_it_in_words_and_ends_with_1_where_something_is_worse(two):
    said = run("compare", *two)
    assert said.exit_code == 1, said.output
    assert re.search(r"WORSE\s+CD_IO_TM_R_SM_RQ is worse over all cells: \+", said.output)
    assert "Flash was first in" in said.output
    assert run("compare", two[0], two[0]).exit_code == 0


@pytest.mark.usefixtures("html_page")
def test_the_command_writes_json_csv_and_html(two, tmp_path: Path):
    for name in ("x.json", "x.csv", "x.html"):
        assert run("compare", *two, "-o", tmp_path / name).exit_code == 1
    model = json.loads((tmp_path / "x.json").read_text())
    assert (model["kind"], model["page"]) == ("cells", "compare")
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert len(lines) == len(model["rows"]) + 1
    html = (tmp_path / "x.html").read_text()
    assert "Flash log" in html
    assert "after against before" in html
    assert "What changed, over all cells" in html
    assert run("compare", *two, "-o", tmp_path / "x.png").exit_code == 1
    drawn = model["figures"]["cells_changes"]
    assert drawn[0]["metric"] == "CD_IO_TM_R_SM_RQ"
    assert [row["pale"] for row in drawn].count(False) >= 1


def test_a_mask_leaves_only_its_metrics(two):
    said = json.loads(run("compare", *two, "--mask", "FL_.*", "--format", "json").output)
    assert {r["metric"] for r in said["rows"] if r["measure"] == "rate"} <= {
        name for name in (r["metric"] for r in said["rows"]) if name.startswith("FL_")
    }
    with pytest.raises(CellsError, match="0 rounds of metrics like 'NOTHING'"):
        run("compare", *two, "--mask", "NOTHING")


def test_a_recording_alone_and_one_round_are_refused(two, tmp_path: Path):
    with pytest.raises(CellsError, match="compared only with another recording"):
        run("compare", two[0])
    single = kept(tmp_path / "one", Cells(dice()).rounds(0))
    with pytest.raises(CellsError, match="has 1 round; expected two or more for rates"):
        recordings((single, single), ("a", "b"))
