"""What a transaction used, in words: against the base, the ends of many arms, cold and hot, more work; and block by
block on the clock of the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.evidence.run import Block
from dbdyno.study.analysis.figure_data.over_time import over_time
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures
from dbdyno.study.analysis.measured.resources import sentences

SECOND = 1_000_000_000


def row(arm: int, user_us: float, *, system_us: float = 0.0, read: float | None = 0.0, blocks: float | None = None):
    return {
        "arm": arm,
        "user_ns": user_us * 1e3,
        "system_ns": system_us * 1e3,
        "read_bytes": read,
        "blocks": blocks,
    }


def told(*rows: TableRow, bases: list[int] | None = None) -> list[str]:
    model = {"resources": list(rows), "arms": [{"name": f"arm {at}"} for at in range(len(rows))]}
    given = bases or [0] * len(rows)
    arms = [SimpleNamespace(base=base) for base in given]
    measures = SimpleNamespace(
        arms=arms, compared_arms=lambda: [(at, arm) for at, arm in enumerate(arms) if arm.base != at]
    )
    return sentences(model, measures)  # type: ignore[arg-type]


def test_an_arm_is_told_against_its_base_with_the_systems_share():
    first = told(row(0, 100), row(1, 90, system_us=18))[0]
    assert first == "CPU of a transaction with arm 1: 108 us (17 % of it in the system), +8.0 % against 100 us."


def test_of_many_arms_the_ends_are_told():
    lines = told(*(row(at, 100 + at) for at in range(6)))
    assert lines[0].startswith("CPU of a transaction: from 100 us") and lines[0].endswith("with arm 5.")
    assert len(lines) == 2


def test_arms_that_read_from_the_storage_are_told_from_those_that_did_not():
    assert told(row(0, 1), row(1, 1, read=200))[-1].startswith("All data were in memory")
    assert told(row(0, 1), row(1, 1, read=20_480))[-1] == (
        "Sessions read from the storage with arm 1 (20.0 KiB a transaction); the other arms read hardly anything."
    )
    assert len(told(row(0, 1, read=None), row(1, 1, read=None))) == 1, "what is not known is not told"


def test_a_transaction_that_does_more_work_than_its_base_is_named():
    lines = told(row(0, 1, blocks=4), row(1, 1, blocks=4), row(2, 1, blocks=50), row(3, 1, blocks=400))
    assert any(line.endswith("arm 3 touches 400 blocks, 100 times as many.") for line in lines)
    assert not any("more work" in line for line in told(row(0, 1, blocks=4), row(1, 1, blocks=5)))


def test_one_arm_or_one_without_cpu_tells_nothing():
    assert told(row(0, 1)) == []
    assert told(row(0, 0), row(1, 1)) == []


def spent(arm: int, cpu_ns: int, *, failed: int = 0, read: int = 0) -> JsonObject:
    """Return an arm's part of a block's report, for 100 transactions."""
    ticks = {"user_ns": 10_000_000, "system_ns": 0, "on_cpu_ns": cpu_ns}
    return {"arm": arm, "transactions": 100, "errors": failed, **ticks, "read_bytes": read, "write_bytes": 0}


def ran(number: int, *arms: JsonObject) -> Block:
    report = {"wall_ns": 2 * SECOND, "arms": list(arms)}
    return Block(number, "measure", 3 * number * SECOND, (3 * number + 2) * SECOND, 0, [], report=report)


def drawn(blocks: list[Block], rows: str = "select 1 where false", **watch: bool) -> list[dict[str, Any]]:
    """Return the figures drawn for two arms, with these rows of `metrics`."""
    values = {"failed": np.zeros(len(blocks)), "count": np.full(len(blocks), 100.0)}
    arms = [ArmMeasures(name, name, 1, blocks, [], values, number=at) for at, name in enumerate("ab")]
    connection = duckdb.connect()
    connection.execute(f"create view metrics as {rows}")
    run = SimpleNamespace(manifest=SimpleNamespace(plan={"watch": watch}), path=None)
    return over_time(connection, run, Measures(arms, []))  # type: ignore[arg-type]


NOTHING = (
    "select 'a' as arm, 0::uinteger as block, '' as source, '' as object_type, '' as object, '' as metric,"
    " 0 as at_ns, 0.0::double as \"value\", 'gauge' as kind where false"
)


def test_cpu_and_storage_of_each_arm_stand_block_by_block_also_where_arms_share_their_blocks():
    """Over time there was only what the machine did, which belongs to no arm."""
    blocks = [
        ran(0, spent(0, 1_000_000), spent(1, 3_000_000, read=819_200)),
        ran(1, spent(0, 2_000_000), spent(1, 6_000_000, read=409_600)),
    ]
    found = {(row["measure"], row["arm"]): row for row in drawn(blocks, NOTHING)}
    assert found["CPU of a transaction", 0]["value"] == [10_000, 20_000], "as the scheduler says, not by ticks"
    assert found["CPU of a transaction", 1]["value"] == [30_000, 60_000]
    assert found["CPU of a transaction", 1]["at_s"] == [0, 3]
    assert found["storage reads of a transaction", 0]["value"] == [0, 0], "an arm without any is told beside one with"
    assert found["storage reads of a transaction", 1]["value"] == [8192, 4096]
    assert not any(measure.startswith("storage writes") for measure, _ in found), "nothing was written: no panel"


def test_a_bench_that_does_not_see_the_sessions_draws_nothing_of_them():
    bare = {"arm": 0, "transactions": 100, "errors": 0}
    assert drawn([ran(0, bare), ran(1, bare)], NOTHING) == []


def test_blocks_that_an_arm_touched_are_drawn_where_statements_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "dbdyno.study.analysis.questions.correlation.texts_of", lambda _: {"7": "select 1", "8": "select own"}
    )
    monkeypatch.setattr("dbdyno.study.analysis.questions.correlation.is_own", lambda text: text.endswith("own"))
    readings = [
        f"select '{arm}', {block}::uinteger, 'pg_stat_statements', '', '{statement}', '{metric}', {at}, {value}.0, 'c'"
        for arm, block, hits in (("a", 0, 400), ("a", 1, 500), ("b", 0, 40_000))
        for statement in "78"
        for metric, value, at in (("shared_hits", 1000, 0), ("shared_hits", 1000 + hits, 1))
    ]
    rows = f"{NOTHING} union all {' union all '.join(readings)}"
    blocks = [ran(0, spent(0, 1), spent(1, 1)), ran(1, spent(0, 1), spent(1, 1))]
    found = {(row["measure"], row["arm"]): row for row in drawn(blocks, rows, statements=True)}
    assert found["blocks of a transaction", 0]["value"] == [4, 5]
    assert found["blocks of a transaction", 1]["value"] == [400], "a block without a reading is left out"
