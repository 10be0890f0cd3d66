"""The report of a recording: correct numbers, visible gaps, findings in words, every output format."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from recordings import CELLS, MINUTE, cache, column, disks, redo, rounds_of, run_of

from dbdyno.base.errors import CellsError, EvidenceError
from dbdyno.cells.alerts import AlertMemory, moment_ns
from dbdyno.cells.collection import Collection
from dbdyno.cells.diff import share_interval
from dbdyno.cells.rates import OK, changes, latencies
from dbdyno.cells.record import Pace, new_recording
from dbdyno.cells.series import open_series
from dbdyno.cli.main import cli
from dbdyno.evidence.run import Run
from dbdyno.judge.cells_flash import share_of
from dbdyno.judge.cells_report import report_page
from fresh_dice import fresh_dice

MINUTES = 8


def said(page: dict, code: str) -> list[str]:
    return [one["text"] for one in page["findings"] if one["code"] == code]


def whole(cell: str, minute: int) -> dict:
    return {**redo(cell, minute), **cache(cell, minute)}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a recording of a flash log and a flash cache on three cells."""
    return run_of(tmp_path_factory.mktemp("recorded") / "rec", rounds_of(MINUTES, whole))


@pytest.fixture
def page(recorded: Run) -> dict:
    return report_page(recorded)


def test_rates_latencies_and_shares_are_those_of_the_counters(recorded: Run):
    with open_series(recorded) as found:
        writes = found.get("flash log", "FL_IO_W")
        assert writes.mean("cel01") == pytest.approx(10.0)
        assert writes.overall() == pytest.approx(10 * (1 + 1.1 + 1.2))
        assert found.get("flash log", "FL_IO_TM_W_RQ").overall() == pytest.approx(250_000)
        assert found.get("flash log", "flash first").overall() == pytest.approx(0.05)
        assert found.get("flash cache", "hits").mean("cel03") == pytest.approx(0.9)
        used = found.get("flash cache", "FC_BY_USED")
        assert (used.kind, used.overall()) == ("gauge", pytest.approx(3 * 1004))


def test_series_in_sql_are_those_of_the_rounds_one_by_one(tmp_path: Path):
    """Two ways to the same numbers: SQL over the recording, and `rates` on pairs of rounds."""
    rounds = disks(fresh_dice(), 9)
    with open_series(run_of(tmp_path / "rec", rounds)) as found:
        series = found.siblings()
    for at, (before, after) in enumerate(itertools.pairwise(rounds), 1):
        moved = changes(before.readings, after.readings)
        for change in moved:
            assert change.verdict == OK
            if change.name == "CD_IO_RQ_R_SM":
                key = change.name, "hard disks", f"{change.cell} {change.object}"
                assert series[key][at] == pytest.approx(change.per_s)
        for row in latencies(moved, over="cell"):
            assert series[row.name, "cells", row.cell][at] == pytest.approx(row.value)


def test_a_cell_that_had_nothing_new_makes_no_step_and_no_zero(tmp_path: Path):
    stale = [0, 1, 1, 1, 4, 5]
    rounds = [
        Collection(
            [column("cel01", redo("cel01", at), at), column("cel02", redo("cel02", stale[at]), stale[at], asked=at)]
        )
        for at in range(6)
    ]
    page = report_page(run_of(tmp_path / "rec", rounds, ("cel01", "cel02")))
    panel = next(p for p in page["families"][0]["panels"] if p["name"] == "FL_IO_W")
    one, two = panel["cells"]
    assert len(one["value"]) == 5
    assert (two["from_s"], two["to_s"]) == ([0, 60, 240], [60, 240, 300])
    assert two["value"] == pytest.approx([11.0] * 3)
    assert page["coverage"]["cells"][1]["counts"]["not refreshed"] == 2
    assert page["coverage"]["cells"][1]["silent_s"] == 120
    assert said(page, "silent") == [
        "Nothing new was collected: cel02 for 120 s. A cell collects once a minute; there is no rate for that time."
    ]


@pytest.mark.parametrize("told", [True, False], ids=["the service says so", "a counter fell"])
def test_a_restart_leaves_a_gap_on_its_own_cell_only(tmp_path: Path, told: bool):
    def one(cell: str, at: int):
        again = cell == "cel02" and at >= 3
        began = (7 if again else 1) if told else None
        return column(cell, redo(cell, at - 3 if again else at), at, began=began)

    rounds = [Collection([one(cell, at) for cell in CELLS]) for at in range(6)]
    page = report_page(run_of(tmp_path / "rec", rounds))
    panel = next(p for p in page["families"][0]["panels"] if p["name"] == "FL_IO_W")
    assert [len(own["value"]) for own in panel["cells"]] == [5, 4, 5]
    assert panel["cells"][1]["to_s"] == [60, 120, 240, 300]
    assert min(v for own in panel["cells"] for v in own["value"]) > 0
    (sentence,) = said(page, "restart")
    how = "the service says so" if told else "fell"
    assert "cel02 before round 4" in sentence
    assert how in sentence
    assert "cel01" not in sentence


def test_a_cell_that_gave_nothing_in_a_round_is_told_and_its_step_reaches_back(tmp_path: Path):
    rounds = rounds_of(6, redo)
    rounds[2].columns[0] = column("cel01", {}, 2, problem="no answer within 30 s")
    page = report_page(run_of(tmp_path / "rec", rounds))
    assert said(page, "no-answer") == ["Of 6 rounds, cells gave nothing: cel01 in 1 (no answer within 30 s)."]
    panel = next(p for p in page["families"][0]["panels"] if p["name"] == "FL_IO_W")
    assert panel["cells"][0]["to_s"] == [60, 180, 240, 300]
    assert panel["cells"][0]["value"] == pytest.approx([10.0] * 4)


def test_the_flash_log_says_who_was_first_what_was_spared_and_what_passed_by(page: dict):
    last = page["flash_log"]["cells"][-1]
    assert last["cell"] == "all cells"
    assert last["share"] == pytest.approx(0.05)
    assert last["identity_holds"]
    assert "Flash was first in 693 of 13,860 redo writes: 5.00 %" in said(page, "flash-first")[0]
    assert said(page, "prevented") == ["The flash log spared sessions 23 outliers, most on cel03 (8)."]
    (bypass,) = said(page, "bypass")
    assert "0.99 %" in bypass
    assert "BUSY 139 (too much redo is not yet on disk)" in bypass


def test_an_identity_that_does_not_hold_is_said(tmp_path: Path):
    def torn(cell: str, minute: int) -> dict:
        return {**redo(cell, minute), ("FL_IO_W", "FLASHLOG"): 601 * minute}

    page = report_page(run_of(tmp_path / "rec", rounds_of(4, torn, ("cel01",)), ("cel01",)))
    section = next(s for s in page["sections"] if s["name"] == "flash-log")
    (note,) = section["notes"]
    assert note == "cel01: disk first + flash first differs from FL_IO_W; the counters were read at different moments."


def test_the_flash_cache_has_its_hit_ratio_and_its_identity(page: dict):
    last = page["flash_cache"]["cells"][-1]
    assert last["hit_ratio"] == pytest.approx(0.9)
    assert last["identity_holds"]
    assert last["used"] == 3 * 1007


def test_the_interval_of_a_share_is_over_rounds_where_they_can_give_one():
    steps = [(0, 0, part, 100.0) for part in (4.0, 6.0, 5.0, 5.0, 7.0, 3.0, 5.0, 5.0)]
    found = share_of(steps)
    assert (found["share"], found["interval_over"]) == (0.05, "rounds")
    assert found["low"] < 0.05 < found["high"] < 0.08
    alone = share_of(steps[:3])
    assert (alone["low"], alone["high"]) == share_interval(15, 300)
    assert alone["interval_over"] == "writes"
    never = share_of([(0, 0, 0.0, 100.0)] * 8)
    assert (never["low"], never["interval_over"]) == (0.0, "writes")
    assert never["high"] > 0
    assert share_of([(0, 0, 100.0, 100.0)] * 8)["high"] == 1.0
    assert share_of([])["share"] is None


def test_a_share_that_came_in_one_burst_has_no_interval_rather_than_a_narrow_one():
    """A modelled cell had 40 % of one minute and nothing of fifteen others; Wilson's interval of
    the whole was 1.88 to 1.97 %."""
    burst = share_of([(0, 0, 0.0, 8000.0)] * 15 + [(0, 0, 5000.0, 10000.0)])
    assert (burst["low"], burst["high"], burst["interval_over"]) == (None, None, "burst")


def test_a_disk_map_has_a_field_per_disk_and_names_the_slow_one(tmp_path: Path):
    rounds = disks(random.Random(3), 9, slow=3.0)
    page = report_page(run_of(tmp_path / "rec", rounds))
    one = next(m for m in page["disks"] if m["name"] == "CD_IO_TM_R_SM_RQ")
    assert (one["cells"], one["disks"]) == (list(CELLS), ["CD_00", "CD_01", "CD_02", "CD_03"])
    assert one["values"][1][3] == max(value for line in one["values"] for value in line)
    assert one["values"][0][0] == pytest.approx(900_000, rel=0.1)
    assert any("cel02 CD_03_cel02" in text for text in said(page, "skew"))
    assert page["verdict"]["word"] == "look"


def test_errors_that_rose_are_findings(tmp_path: Path):
    def bad(cell: str, minute: int) -> dict:
        return {("CD_IO_ERRS", "CD_02_cel01"): 3.0 * (minute > 2 and cell == "cel01")}

    run = run_of(tmp_path / "rec", rounds_of(5, bad))
    page = report_page(run)
    assert said(page, "errors") == ["cel01: CD_IO_ERRS of CD_02_cel01 rose by 3."]


def details(severity: str, **more: str) -> dict[str, str]:
    return {
        "name": "3_1",
        "severity": severity,
        "beginTime": "2026-11-21T10:00:00+00:00",
        "alertMessage": '"Hard disk is in predictive failure"',
        **more,
    }


def test_alerts_are_kept_once_and_again_when_they_change():
    watch, since_ns = AlertMemory(), moment_ns("2026-11-21T11:00:00+00:00")
    (first,) = watch._new("cel01", [details("critical")], since_ns)
    assert first["alertMessage"] == "Hard disk is in predictive failure"
    assert watch._new("cel01", [details("critical")], since_ns) == []
    assert len(watch._new("cel01", [details("critical", endTime="x")], since_ns)) == 1
    assert len(watch._new("cel02", [details("critical")], since_ns)) == 1
    old = details("critical", beginTime="2026-10-01T00:00:00+00:00")
    assert watch._new("cel03", [old, {"severity": "critical"}], since_ns) == []


def test_alerts_are_findings_those_that_are_clear_are_not(tmp_path: Path):
    rounds = rounds_of(5, redo)
    rounds[0].alerts = {"cel02": [details("critical")], "cel03": [details("critical")]}
    rounds[4].alerts = {"cel03": [details("clear")]}
    (text,) = said(report_page(run_of(tmp_path / "rec", rounds)), "alert")
    assert text.startswith("cel02: alert 3_1 (critical) at 2026-11-21T10:00:00+00:00: ")


def test_what_was_changed_during_the_recording_is_said(tmp_path: Path):
    run = run_of(tmp_path / "rec", rounds_of(5, redo))
    mode = {"cell.flashCacheMode": "WriteThrough", "cell.releaseVersion": "11.2"}
    run.save(
        configuration={
            "first": dict.fromkeys(CELLS, mode),
            "last": {"cel01": mode, "cel02": {**mode, "cell.flashCacheMode": "WriteBack"}},
        }
    )
    page = report_page(run)
    assert said(page, "configuration") == [
        "cel02 was changed during the recording: cell.flashCacheMode from 'WriteThrough' to 'WriteBack'."
    ]
    (row,) = page["sections"][0]["tables"][1]["rows"]
    assert (row["cells"], row["cell.releaseVersion"]) == ("cel01, cel02, cel03", "11.2")


def test_findings_about_siblings_do_not_say_one_thing_twice(tmp_path: Path):
    """Megabytes go with requests, and a grid disk with the cell disk under it."""

    def counters(cell: str, minute: int) -> dict[tuple[str, str], float]:
        found = {}
        for disk in range(6):
            n = minute * 100 * (5 if (cell, disk) == ("cel01", 2) else 1)
            for name, item in (("CD", f"CD_{disk:02}"), ("GD", f"DATA_CD_{disk:02}")):
                found[f"{name}_IO_RQ_R_SM", f"{item}_{cell}"] = n
                found[f"{name}_IO_BY_R_SM", f"{item}_{cell}"] = n / 128
        return found

    page = report_page(run_of(tmp_path / "rec", rounds_of(9, counters)))
    assert len([row for row in page["skew"]["rows"] if row["differs"]]) >= 4
    told = [text for text in said(page, "skew") if "disks" in text]
    assert len(told) == 1
    assert told[0].startswith("CD_IO_RQ_R_SM differs from the median of the hard disks on 1 of 18")


def test_a_long_recording_is_thinned_without_losing_its_mean(tmp_path: Path):
    page = report_page(run_of(tmp_path / "rec", rounds_of(261, redo, ("cel01",)), ("cel01",)))
    (own,) = page["families"][0]["panels"][0]["cells"]
    assert len(own["value"]) == 130, "two intervals each, since 260 are too many"
    assert own["to_s"][-1] == 260 * 60
    assert own["value"] == pytest.approx([10.0] * len(own["value"]))


def test_one_round_has_no_rates_and_says_so(tmp_path: Path):
    page = report_page(run_of(tmp_path / "rec", rounds_of(1, whole)))
    assert page["families"] == []
    assert "Only one collection is recorded" in said(page, "one-collection")[0]


def test_a_recording_without_metrics_is_refused(tmp_path: Path):
    empty = new_recording(tmp_path / "rec", [], Pace())
    with pytest.raises((CellsError, EvidenceError)):
        report_page(empty)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--format", "text"], "FLASH LOG"),
        (["--format", "json"], '"page": "report"'),
        (["--format", "csv"], "flash-log,Who was first,cel01,writes,4200.0,count,ok"),
        (["--format", "jsonl"], '"section": "flash-log"'),
    ],
)
@pytest.mark.usefixtures("html_page")
def test_dbdyno_report_writes_every_form(recorded: Run, options: list[str], wanted: str):
    found = CliRunner().invoke(cli, ["report", str(recorded.path), *options])
    assert found.exit_code == 0, found.output
    assert wanted in found.stdout


@pytest.mark.usefixtures("html_page")
def test_dbdyno_report_writes_a_page_into_the_run_and_figures_where_asked(recorded: Run, tmp_path: Path):
    found = CliRunner().invoke(cli, ["report", str(recorded.path)])
    assert found.exit_code == 0, found.output
    text = (recorded.path / "report.html").read_text()
    assert "Who was first" in text
    assert text.count('id="figure-cells_flash-log"') == 1
    found = CliRunner().invoke(cli, ["report", str(recorded.path), "--figures", str(tmp_path / "f")])
    assert found.exit_code == 0, found.output
    names = {path.name for path in (tmp_path / "f").iterdir()}
    assert {"cells_rounds.png", "cells_flash-log.svg", "cells_flash-cache.png"} <= names
    shown = json.loads(CliRunner().invoke(cli, ["report", str(recorded.path), "--format", "json"]).stdout)
    assert shown["facts"]["seconds"] == (MINUTES - 1) * MINUTE / 1e9
