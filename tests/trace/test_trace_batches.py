"""Batches numbered by arrays equal those numbered by SQL's window functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

from dbdyno.study.analysis.traces.batches import batch_numbers, batched_rows, batches_of_at_least, even_batches

SEED = 43


@pytest.mark.parametrize("count", [1, 2, 7, 8, 19, 20, 21, 159, 160, 161, 1000])
def test_batches_of_a_group_are_those_of_sql(count: int) -> None:
    sql = f"""select ntile(20) over (order by range) - 1,
      (row_number() over (order by range) - 1) * greatest(1, least(20, {count} // 8)) // {count} from range({count})"""
    expected = np.array(duckdb.sql(sql).fetchall())
    assert even_batches(count, 20).tolist() == expected[:, 0].tolist()
    assert batches_of_at_least(count, 20, 8).tolist() == expected[:, 1].tolist()


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("groups", [1, 5, 70_000])
def test_rows_of_many_groups_are_numbered_in_time_order(groups: int, in_order: bool) -> None:
    dice = np.random.default_rng([SEED, groups, in_order])
    count = 3000
    started = dice.integers(0, 500, count)
    line = dice.permutation(count)
    if in_order:
        order = np.lexsort((line, started))
        started, line = started[order], line[order]
    connection = duckdb.connect()
    rows = {"grouped": dice.integers(0, groups, count).astype(np.int32), "started_ns": started, "line": line}
    connection.register("given", {**rows, "place": np.arange(count)})
    expected = connection.execute(
        "select ntile(20) over (partition by grouped order by started_ns, line) - 1 as b from given order by place"
    ).fetchnumpy()["b"]
    found = batch_numbers(rows["grouped"], started, line, lambda size: even_batches(size, 20))
    assert found.tolist() == expected.tolist()


def test_a_query_without_rows_has_no_batches() -> None:
    traces: Any = SimpleNamespace(connection=duckdb.connect())
    query = "select 1 as grouped, 1::bigint as started_ns, 1::bigint as line, 5 as ns where false"
    with batched_rows(traces, query, lambda size: even_batches(size, 20)) as rows:
        counts = traces.connection.execute(f"select count(*), count(batch), count(ns) from {rows}").fetchall()
    assert counts == [(0, 0, 0)]
