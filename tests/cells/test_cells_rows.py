"""Columns in any order, DETAIL listings, pasted prompts, numbers of other locales: read or reported, never dropped."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.cells.alerts import recorded_alerts
from dbdyno.cells.documents import read_any
from dbdyno.cells.listing import Reading, read_text
from dbdyno.cli.main import cli
from dbdyno.evidence.run import find_run

NAMES = ("FL_IO_W", "CD_IO_RQ_R_SM", "DB_FL_IO_RQ", "GD_IO_BY_R_LG", "CL_CPUT", "XY_NEW_METRIC")
OBJECTS = ("FLASHLOG", "CD_00_exa1cel01", "DATA_CD_03_CEL01", "SALES", "_OTHER_DATABASE_", "SALES.BATCH")
VALUES = ("0 IO requests", "2,930 IO requests", "10.797 MB/sec", "19,885", "48.0 C", "205.5 us/request", "100 %")
TIME = "2012-10-12T14:33:45-04:00"


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(OBJECTS), st.sampled_from(VALUES), st.booleans(), st.randoms())
def test_every_order_of_attributes_reads_back_equal(name: str, item: str, value: str, dated: bool, dice: random.Random):
    columns = [
        name,
        item,
        value,
        *([TIME] if dated else []),
        *dice.sample(["Cumulative", "normal"], dice.randint(0, 2)),
    ]
    plain = read_text("\t ".join([name, item, value, *([TIME] if dated else [])])).readings
    assert [(r.name, r.object, r.value) for r in plain] == [
        (name, item, float(value.split(maxsplit=1)[0].replace(",", "")))
    ]
    dice.shuffle(columns)
    shuffled = read_text("cel01: " * dice.randint(0, 1) + "\t ".join(columns))
    assert [r._replace(cell="") for r in shuffled.readings] == plain, (columns, shuffled)


def test_a_kind_of_object_beside_an_object_is_no_object():
    found = read_text(
        "FLASHLOG Cumulative FL_IO_W 5 IO requests FLASHLOG\nCD_IO_RQ_R_SM CELLDISK CD_00_c1 7 IO requests"
    )
    assert [(r.name, r.object, r.value) for r in found.readings] == [
        ("FL_IO_W", "FLASHLOG", 5.0),
        ("CD_IO_RQ_R_SM", "CD_00_c1", 7.0),
    ]


def test_metrics_in_detail_are_readings():
    text = (
        "\t name:  \t FL_IO_W\n\t alertState: \t normal\n\t collectionTime: \t {}\n\t metricObjectName: \t FLASHLOG\n"
    )
    text = text.format(TIME) + "\t metricType: \t Cumulative\n\t metricValue: \t 2,930 IO requests\n"
    found = read_any(f"{text}\n{text.replace('FL_IO_W', 'FL_RQ_W')}")
    assert [(r.name, r.object, r.value, r.unit) for r in found.readings] == [
        ("FL_IO_W", "FLASHLOG", 2930.0, "IO requests"),
        ("FL_RQ_W", "FLASHLOG", 2930.0, "IO requests"),
    ]
    assert (found.details, found.unread) == ([], [])


@pytest.mark.parametrize(
    "typed", ["[oracle@db01 ~]$ dcli -g c cellcli -e list x", "[root@cel01 /opt]# cellcli", "$ cellcli"]
)
def test_a_paste_that_begins_with_a_prompt_is_no_json(typed: str):
    found = read_any(f"{typed}\nFL_IO_W FLASHLOG 5 IO requests\n")
    assert [r.value for r in found.readings] == [5.0]
    assert found.unread == []


@pytest.mark.parametrize("text", ['{"a": 1}', "[]", "[\n]", '[{"name": "FL_IO_W", "metricValue": "5"}]', "[" * 3000])
def test_json_is_still_json(text: str):
    assert not any("neither a metric" in entry.why for entry in read_any(text).unread)


@pytest.mark.parametrize("value", ["365.322 MB", "1.325 us/request", "1.325.800 IO requests", "0,062 MB", "1.325,8 MB"])
def test_a_number_that_may_be_of_another_language_is_told_and_not_taken(value: str):
    found = read_text(f"GD_IO_BY_R_LG DATA_CD_00 {value}\nFL_IO_W FLASHLOG 5 IO requests\nGD_IO_BY_R_SM D 12.345 MB\n")
    assert [(r.name, r.value) for r in found.readings] == [("FL_IO_W", 5.0)]
    assert [entry.line for entry in found.unread] == [1, 3]


@pytest.mark.parametrize("beside", ["", "FL_IO_W FLASHLOG 5 IO requests\n"], ids=["alone", "with others"])
def test_a_number_of_another_language_is_told_with_its_place_and_what_to_do(beside: str, tmp_path: Path):
    file = tmp_path / "german.txt"
    file.write_text(f"{beside}GD_IO_BY_R_LG DATA_CD_00 365.322 MB\n")
    said = CliRunner().invoke(cli, ["cells", "import", str(file), "--cell", "c", "--out", str(tmp_path / "run")])
    told = said.stderr + str(said.exception) + str(getattr(said.exception, "next_step", ""))
    line = 1 + beside.count("\n")
    assert "365.322 MB" in told and (f"german.txt:{line}:" in told or f"line {line} is" in told)
    assert "separators" in told and "LC_ALL=C" in told
    assert said.exit_code


def test_a_metric_in_detail_without_its_value_is_told():
    cut = "\t name: FL_RQ_W\n\t metricObjectName: FLASHLOG\n\t objectType: FLASHLOG\n"
    whole = f"\t name: FL_IO_W\n\t metricObjectName: FLASHLOG\n\t metricValue: 5 IO requests\n\n{cut}"
    found = read_text(whole)
    assert [(r.name, r.value) for r in found.readings] == [("FL_IO_W", 5.0)]
    assert [(entry.line, entry.why) for entry in found.unread] == [(5, "a metric in DETAIL without its value")]
    alert = "\t name: 7\n\t alertMessage: hot\n\t metricObjectName: CPU\n\t severity: warning\n"
    assert (read_text(alert).unread, len(read_text(alert).details)) == ([], 1)


def test_three_decimals_below_a_hundred_are_those_of_cellcli():
    found = read_text("GD_IO_BY_R_LG DATA_CD_00 12.345 MB\nGD_IO_BY_R_LG DATA_CD_01 100.000 MB\n")
    assert [r.value for r in found.readings] == [12.345, 100.0]
    assert isinstance(found.readings[0], Reading)


ALERTS = f"""\t 1_1 \t {TIME} \t critical \t "Hard disk failed. Status : FAILED"
\t 2 \t {TIME} \t warning \t "Something else"
"""
CELL = "\t name: \t exa1cel01\n\t flashCacheMode: \t WriteBack\n\t releaseVersion: \t 12.1\n\t cpuCount: \t 24\n"


def test_alert_lists_and_configuration_become_evidence(tmp_path: Path):
    for name, text in (("m", f"FL_IO_W FLASHLOG 5 IO requests {TIME}\n"), ("a", ALERTS), ("c", CELL)):
        (tmp_path / f"{name}.txt").write_text(text)
    files = [str(tmp_path / f"{name}.txt") for name in "mac"]
    found = CliRunner().invoke(cli, ["cells", "import", *files, "--cell", "exa1cel01", "--out", str(tmp_path / "run")])
    assert found.exit_code == 0, found.stderr
    assert "2 alert(s), what 1 cell(s) are" in found.stderr
    run = find_run(str(tmp_path / "run"), tmp_path)
    assert run.manifest.configuration["first"]["exa1cel01"]["cell.flashCacheMode"] == "WriteBack"
    assert [(cell, alert["severity"]) for cell, alert in recorded_alerts(run)] == [
        ("exa1cel01", "critical"),
        ("exa1cel01", "warning"),
    ]


def test_alerts_without_any_metric_say_what_they_need(tmp_path: Path):
    (tmp_path / "a.txt").write_text(ALERTS)
    found = CliRunner().invoke(cli, ["cells", "import", str(tmp_path / "a.txt"), "--out", str(tmp_path / "run")])
    assert "together with" in str(getattr(found.exception, "next_step", ""))
