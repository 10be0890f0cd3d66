"""`dbdyno cells show` with cells that answer, fail, or answer in part."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from ssh_server import answers, hangs, servers

from dbdyno.cli.cells.show import command

XML = """<?xml version="1.0" encoding="utf-8" ?>
<cli-output><context cell="{cell}" ossStartTimestamp="1430673687318"/>
<metric><name>FL_IO_W</name><metricObjectName>FLASHLOG</metricObjectName>
<metricValue>{writes}</metricValue><collectionTime>1431455744000</collectionTime></metric>
<metric><name>CL_CPUT</name><metricObjectName>{cell}</metricObjectName>
<metricValue>{cpu}</metricValue><collectionTime>1431455744000</collectionTime></metric>
</cli-output>
"""
TEXT = "\t FL_IO_W    \t FLASHLOG\t 1,234,567,891 IO requests\n\t CL_CPUT \t cel \t 30.5 %\n"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    behaviours = [
        answers(XML.format(cell="cel01", writes=1000, cpu=10.25)),
        answers(XML.format(cell="cel02", writes=7, cpu=90)),
        answers(TEXT),
        answers("CELL-01509: cell service is down.\n"),
        hangs(),
    ]
    with servers(tmp_path, behaviours) as found:
        yield found


def run(rig, ports: list[int], *options: str):
    hosts = ",".join(f"celladmin@127.0.0.1:{port}" for port in ports)
    return CliRunner().invoke(
        command,
        ["-H", hosts, "--key", str(rig.key), "--known-hosts", str(rig.known_hosts), "--timeout", "4", *options],
    )


def test_every_cell_has_a_column_and_counters_a_sum(rig):
    found = run(rig, rig.ports[:3], "--mask", "FL_.*")
    assert found.exit_code == 0, found.output
    assert "1,234,567,891" in found.stdout
    assert "1,234,568,898" in found.stdout  # all digits of 1000 + 7 + 1234567891
    assert "CL_CPUT" not in found.stdout


def test_percentages_are_not_summed(rig):
    page = json.loads(run(rig, rig.ports[:2], "-m", "CL_CPUT", "--format", "json").stdout)
    (row,) = page["rows"]
    assert (row["all"], row["low"], row["high"]) == (None, 10.25, 90.0)


def test_a_cell_that_fails_costs_only_its_own_column(rig):
    found = run(rig, rig.ports, "-m", "FL_IO_W", "--format", "csv")
    assert found.exit_code == 2
    rows = {r["cell"]: r["value"] for r in csv.DictReader(io.StringIO(found.stdout))}
    assert rows["cel01"] == "1000.0"
    assert "CELL-01509: cell service is down." in found.stderr
    assert "no answer within 4 s" in found.stderr


def test_options_of_the_ancestor_keep_their_short_forms(rig):
    found = run(rig, rig.ports[:2], "-m", "FL_IO_W", "-d", "-c", "-s", "-a")
    assert found.exit_code == 0, found.output
    for word in ("min", "max", "avg", "1.007e+03", "redo writes that the flash log served"):
        assert word in " ".join(found.stdout.split())


def test_a_mask_that_matches_nothing_says_so(rig):
    found = run(rig, rig.ports[:1], "-m", "NOTHING")
    assert "no metric matches 'NOTHING'" in found.stderr
    found = run(rig, rig.ports[:1], "-m", "(")
    assert found.exit_code != 0


def test_a_mask_does_not_take_the_weights_of_a_latency_away(tmp_path: Path):
    row = "<metric><name>{}</name><metricObjectName>CD_0{}</metricObjectName><metricValue>{}</metricValue></metric>"
    rows = [
        ("CD_IO_TM_R_SM_RQ", 0, 1000),
        ("CD_IO_TM_R_SM_RQ", 1, 9000),
        ("CD_IO_RQ_R_SM_SEC", 0, 300),
        ("CD_IO_RQ_R_SM_SEC", 1, 100),
    ]
    text = f"<cli-output>{''.join(row.format(*one) for one in rows)}</cli-output>"
    with servers(tmp_path, [answers(text)]) as rig:
        found = run(rig, rig.ports, "-m", "CD_IO_TM.*", "--format", "json")
    (shown,) = json.loads(found.stdout)["rows"]
    assert (shown["metric"], shown["all"]) == ("CD_IO_TM_R_SM_RQ", 3000.0)


def test_a_value_that_comes_twice_is_not_added_to_itself(tmp_path: Path):
    with servers(tmp_path, [answers("FL_IO_W FLASHLOG 7 IO requests\n" * 3)]) as rig:
        found = run(rig, rig.ports, "--format", "json")
    assert found.exit_code == 2
    page = json.loads(found.stdout)
    assert page["rows"][0]["all"] == 7
    assert page["cells"][0]["problem"] == "2 values occurred twice; dbdyno keeps the first of each"
