"""Numbers on a page and their cells: no cell is missing or counted twice, and a wrong clock is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from recordings import CELLS, MINUTE, column, redo, rounds_of, run_of
from ssh_server import answers, servers

from dbdyno.cells.clocks import clock_of, duration_words
from dbdyno.cells.collection import Collection
from dbdyno.cells.diff import diff_page
from dbdyno.cells.identity import CellNames
from dbdyno.cells.record import recorded_round
from dbdyno.cli.main import cli
from dbdyno.evidence.run import Run
from dbdyno.judge.cells_page import compare_page, recordings
from dbdyno.judge.cells_report import report_page

XML = """<?xml version="1.0" encoding="utf-8" ?>
<cli-output><context cell="{cell}" ossStartTimestamp="{began}"/>
<metric><name>FL_IO_W</name><metricObjectName>FLASHLOG</metricObjectName>
<metricValue>1000</metricValue><collectionTime>1431455744000</collectionTime></metric>
</cli-output>
"""


def dead(folder: Path, minutes: int = 8, alive: int = 0) -> Run:
    """Return a recording in which cel02 answers only in the first `alive` rounds."""
    rounds = rounds_of(minutes, redo)
    for at, one in enumerate(rounds):
        if at >= alive:
            one.columns[1] = column("cel02", {}, at, problem="cannot be reached: No route to host")
    return run_of(folder, rounds)


def test_a_cell_dead_for_the_whole_recording_is_finding_number_one(tmp_path: Path):
    page = report_page(dead(tmp_path / "rec"))
    first = page["findings"][0]
    assert (first["code"], first["level"]) == ("dead", "bad")
    assert first["text"].startswith("cel02 returned nothing in any of 8 rounds (cannot be reached: No route to host")
    assert page["facts"]["cells"] == list(CELLS)
    assert page["coverage"]["cells"][1]["counts"]["no answer"] == 8


def test_a_cell_that_died_meanwhile_is_finding_number_one_too(tmp_path: Path):
    page = report_page(dead(tmp_path / "rec", alive=3))
    assert page["findings"][0]["text"].startswith("cel02 returned nothing from round 4 of 8 to the end")


def test_a_dead_cell_is_told_of_by_diff_and_compare(tmp_path: Path):
    runs = dead(tmp_path / "before"), dead(tmp_path / "after")
    page = diff_page(*(recorded_round(run) for run in runs))
    assert page["problems"][0].startswith("cel02: returned nothing in any round: cannot be reached")
    compared = compare_page(*recordings(runs, ("before", "after")))
    assert [w["text"] for w in compared["warnings"] if w["code"] == "cells.dead"] == [
        "cel02 returned nothing in any round of before: no figure here includes it",
        "cel02 returned nothing in any round of after: no figure here includes it",
    ]


def test_a_recording_in_which_no_cell_answered_says_why(tmp_path: Path):
    rounds = [Collection([column("cel01", {}, 0, problem="it refused the key")])]
    run = run_of(tmp_path / "rec", rounds, ("cel01",))
    found = CliRunner().invoke(cli, ["report", str(run.path)])
    assert "cel01: it refused the key" in str(found.exception)


def behind(folder: Path, minutes: int, hours: float) -> Run:
    """Return a recording in which the clock of cel02 is that many hours behind."""
    rounds = rounds_of(minutes, redo)
    for at, one in enumerate(rounds):
        one.columns[1] = column("cel02", redo("cel02", at), at - 60 * hours, asked=at)
    return run_of(folder, rounds)


@pytest.mark.parametrize(("hours", "words"), [(1, "is 1 h behind ours"), (-2, "is 2 h ahead of ours")])
def test_a_clock_that_is_off_is_named_and_does_not_stretch_the_report(tmp_path: Path, hours: float, words: str):
    page = report_page(behind(tmp_path / "rec", 12, hours))
    assert page["facts"]["seconds"] < 13 * 60
    (told,) = [one for one in page["findings"] if one["code"] == "clock"]
    assert told["level"] == "bad"
    assert told["text"] == f"The clock of cel02 {words}. Its times are shifted to match."
    panel = next(p for p in page["families"][0]["panels"] if p["name"] == "FL_IO_W")
    assert all(-60 <= at <= 13 * 60 for own in panel["cells"] for at in own["to_s"])


@pytest.mark.parametrize("lag_s", [0, 5, 59, 100])
def test_a_clock_within_what_a_minute_hides_is_right(lag_s: int):
    asked = [at * MINUTE for at in range(5)]
    assert clock_of(asked, [at - lag_s * 10**9 for at in asked]).offset_text == ""


def test_a_cell_that_stopped_collecting_is_not_taken_for_a_clock_for_certain():
    asked = [at * MINUTE for at in range(5)]
    clock = clock_of(asked, [-60 * MINUTE] * 5)
    assert not clock.certain


def test_a_clock_at_another_pace_is_named_as_that():
    asked = [at * MINUTE for at in range(5)]
    assert clock_of(asked, [at * 60 for at in asked]).offset_text == "runs 60 times as fast as ours"
    set_back = [*asked[:2], *(at - 60 * MINUTE for at in asked[2:])]
    assert clock_of(asked, set_back).ahead_s or clock_of(asked, set_back).offset_text


@pytest.mark.parametrize(("seconds", "words"), [(42, "42 s"), (300, "5 min"), (3590, "1 h"), (86400 * 12, "12 days")])
def test_a_length_of_time_in_words(seconds: float, words: str):
    assert duration_words(seconds) == words


def show(rig, *options: str):
    reach = rig.reach(",".join(f"127.0.0.1:{port}" for port in rig.ports), *options, timeout_s=8)
    return CliRunner().invoke(cli, ["cells", "show", *reach])


def test_a_cell_reached_by_several_addresses_is_summed_once(tmp_path: Path):
    one, other = (XML.format(cell=name, began=1_430_673_687_318) for name in ("exa1cel01", "exa1cel02"))
    with servers(tmp_path, [answers(one), answers(one), answers(other)]) as rig:
        found = show(rig)
    assert found.exit_code == 0, found.output
    assert "2,000" in found.stdout
    assert "3,000" not in found.stdout
    assert found.stdout.split("\n")[0].split() == ["metric", "all", "unit", "exa1cel01", "exa1cel02"]
    assert "it is one cell, and counts once" in found.stderr


def test_two_cells_of_one_name_are_kept_apart_by_their_addresses(tmp_path: Path):
    texts = [XML.format(cell="cel01", began=1_430_673_687_318 + at) for at in range(2)]
    with servers(tmp_path, [answers(text) for text in texts]) as rig:
        found = show(rig)
    assert "2,000" in found.stdout
    assert f"cel01 (127.0.0.1:{rig.ports[0]})" in found.stdout


def test_a_recording_by_addresses_counts_a_cell_once_by_its_own_name(tmp_path: Path):
    """As recordings of earlier versions hold them: by address, what each calls itself beside."""
    ways = ("10.0.0.1", "10.0.0.2", "10.0.1.1")
    own = {"10.0.0.1": "cel01", "10.0.0.2": "cel02", "10.0.1.1": "cel01"}
    run = run_of(tmp_path / "rec", rounds_of(8, lambda way, at: redo(own[way], at), ways), ways)
    run.save(configuration={"first": {way: {"cell.name": name, "cell.id": name} for way, name in own.items()}})
    page = report_page(run)
    assert page["facts"]["cells"] == ["cel01", "cel02"]
    whole = page["flash_log"]["cells"][-1]
    assert whole["writes"] == pytest.approx(7 * 600 * (1 + 1.1))
    assert [c.host.name for c in recorded_round(run).columns] == ["cel01", "cel02"]


def test_a_cell_keeps_its_name_when_it_does_not_answer():
    names = CellNames()
    first = Collection([column("10.0.0.1", {("CD_IO_RQ_R_SM", "CD_00_cel01"): 1.0}, 0)])
    first.columns[0].everything = first.columns[0].readings
    names.apply_names(first)
    later = Collection([column("10.0.0.1", {}, 1, problem="no answer within 30 s")])
    names.apply_names(later)
    assert [one.columns[0].host.name for one in (first, later)] == ["cel01", "cel01"]
