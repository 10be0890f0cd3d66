"""The study wide-loader on a real Cassandra: every method leaves the same rows, and nothing else remains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from wide_lab import WideLab

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.bench.kinds import kind_of
from dbdyno.bench.undo import CASSANDRA_DATA
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.analysis.questions.loading import LoadMethod, sentences
from dbdyno.study.library import find_study
from dbdyno.study.run.execute import start

LINES = 400


def nodes() -> list[int]:
    """Return the process IDs of Cassandra nodes that dbdyno started."""
    commands = [(one, one / "cmdline") for one in Path("/proc").iterdir() if one.name.isdigit()]
    return [int(one.name) for one, file in commands if file.exists() and CASSANDRA_DATA.encode() in file.read_bytes()]


def test_without_an_address_it_starts_a_cassandra_of_its_own() -> None:
    plan = find_study("wide-loader").plan({})
    assert plan.dsn == "cassandra" and kind_of(plan.dsn).name == "cassandra"
    assert kind_of("cassandra://127.0.0.1/shop").name == "cassandra"
    with pytest.raises(PlanError, match="'carrier pigeon' is not a loading method"):
        find_study("wide-loader").plan({"ways": "carrier pigeon"}, target="cassandra://127.0.0.1/shop")


def test_where_cassandra_is_not_installed_nothing_begins_and_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBDYNO_CASSANDRA_JARS", str(tmp_path))
    with pytest.raises(TargetError, match="Cassandra's jars are not installed") as caught:
        start(find_study("wide-loader").plan({}), tmp_path / "runs")
    assert "make setup-wide" in str(caught.value.next_step)
    assert "--target cassandra://host/keyspace" in str(caught.value.next_step)
    assert not (tmp_path / "runs").exists()


@pytest.mark.soak
def test_the_cassandra_that_it_starts_is_gone_afterwards(cassandra_node: object, tmp_path: Path) -> None:
    del cassandra_node  # skips where none can be started
    before = len(nodes())
    plan = find_study("wide-loader").plan({"lines": str(LINES), "ways": "batch,row"}, quick=True)
    run = start(replace(plan, schedule=replace(plan.schedule, blocks=2, warmup_blocks=0)), tmp_path)
    assert run.manifest.flows["engines"]["cassandra"]["version"].startswith("Cassandra ")
    assert len(nodes()) == before


def test_a_way_whose_time_is_its_start_is_said_to_be_that() -> None:
    ways = [LoadMethod("batch", 4000, 0.5e9, 0.01e9), LoadMethod("direct", 4000, 10e9, 9.7e9)]
    first, second = sentences(ways)
    assert first == "Rows a second: batch 8,000, direct 400."
    assert second.startswith("97 % of the 10.0 s of direct is also needed for 40 rows")
    assert "--set lines=200000" in second
    assert sentences([LoadMethod("direct", 1_000_000, 20e9, 9.7e9)]) == ["Rows a second: direct 50,000."]


@pytest.mark.soak
def test_every_way_leaves_the_same_rows_and_the_table_goes(wide_lab: WideLab, tmp_path: Path) -> None:
    plan = find_study("wide-loader").plan({"lines": str(LINES)}, quick=True, target=wide_lab.dsn)
    plan = replace(plan, schedule=replace(plan.schedule, blocks=2, warmup_blocks=0))
    run = start(plan, tmp_path)
    model = analyse(run)
    assert [arm["name"] for arm in model["arms"]] == ["batch", "row", "async", "direct"]
    assert all(arm["errors"] == 0 and arm["ops"] == 2 for arm in model["arms"])
    starts = run.manifest.flows["arm_floor_ns"]
    assert list(starts) == ["batch", "row", "async", "direct"] and starts["direct"] > starts["batch"]
    said = model["verdict"]["sentences"]
    assert said[0].startswith("Rows a second: batch ") and any(
        "of direct is also needed for 40 rows" in s for s in said
    )
    asked = "select table_name from system_schema.tables where keyspace_name = %s"
    assert list(wide_lab.session.execute(asked, [wide_lab.keyspace])) == []
