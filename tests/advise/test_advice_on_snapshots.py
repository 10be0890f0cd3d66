"""Advice on an interval of snapshots: only what happened between its two ends counts."""

from __future__ import annotations

import json
from pathlib import Path

import planted_faults as planted
import pytest
from advised import Found
from psycopg.conninfo import make_conninfo

from command_line import dbdyno, succeeded
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SORT = "select id from child order by note, v desc offset 119998"


@pytest.mark.soak
def test_the_interval_has_the_statement_that_sorted_within_it(
    advised: EmbeddedPostgres, spoilt: Found, tmp_path: Path
) -> None:
    dsn = make_conninfo("", **advised.conninfo())
    store = ("--store", tmp_path / "snaps")
    assert dbdyno("snap", "take", "--target", dsn, *store).returncode == 0
    planted.run(advised, "set work_mem = '64kB'", *([SORT] * 3))
    assert dbdyno("snap", "take", "--target", dsn, *store).returncode == 0
    done = succeeded("advise", "snap:1..2", *store, "--format", "json")
    model = json.loads(done.stdout)
    found = {one["rule"]: one for one in model["findings"]}
    figures = {one["what"]: one["value"] for one in found["temp_files"]["evidence"]}
    # The bound is all of the statement's time: an experiment halved one of which temporary I/O was a twentieth.
    assert figures["calls"] == 3 and 0.5 < found["temp_files"]["stake"] <= 1
    assert "missing_index" not in found and "max_wal_size" not in found, "that was before"
    told = {one["rule"]: one for one in model["not_judged"]}
    assert "snapshots do not contain this" in told["duplicate_index"]["why"]
    assert "dbdyno advise" in told["wraparound"]["next"]


PAIRS = (
    "create table pairs (id int, a int, b int, note text)",
    "insert into pairs select i, i % 400, i % 400, repeat('p', 60) from generate_series(1, 120000) i",
    "create index pairs_id on pairs (id)",
    "vacuum pairs",
    "analyze pairs",
)


@pytest.mark.soak
def test_columns_tell_a_missing_index_under_an_aggregate_and_statistics_that_mislead(
    advised: EmbeddedPostgres, spoilt: Found, tmp_path: Path
) -> None:
    """Two columns that go together are expected to be met by 120,000 / 400 / 400 rows, and are by 300."""
    dsn = make_conninfo("", **advised.conninfo())
    store = ("--store", tmp_path / "snaps")
    planted.run(advised, *PAIRS)
    try:
        assert dbdyno("snap", "take", "--target", dsn, *store).returncode == 0
        planted.run(
            advised,
            *(f"select sum(b) from pairs where a = {n}" for n in range(12)),
            *(f"select sum(b) from pairs where id = {n}" for n in range(12)),
            *(f"select note from pairs where a = {n} and b = {n}" for n in range(20)),
            *(f"select note from pairs where a = {n} and b = {n} and id > 5 limit 500" for n in range(20)),
        )
        assert dbdyno("snap", "take", "--target", dsn, *store).returncode == 0
    finally:
        planted.run(advised, "drop table pairs")
    done = succeeded("advise", "snap:1..2", *store, "--format", "json")
    found = Found(spoilt.facts, json.loads(done.stdout))
    named = [one for one in found.of("missing_index") if "sum(b)" in one["sentence"]]
    assert [one["fix"] for one in named] == [["create index concurrently on pairs (a)"]]
    misled = found.only("wrong_estimates")
    assert misled["fix"] == ["create statistics (dependencies, mcv) on a, b from pairs", "analyze pairs"]
    figures = {one["what"]: one["value"] for one in misled["evidence"]}
    assert figures["rows a call"] == 300 and figures["rows expected"] == 1


def test_a_page_in_every_form(advised: EmbeddedPostgres, spoilt: Found, tmp_path: Path, html_page: None) -> None:
    dsn = make_conninfo("", **advised.conninfo())
    shown = dbdyno("advise", dsn, "--only", "key_end", "--only", "shared_buffers", cwd=tmp_path)
    assert "2 000 000 000" in shown.stdout and "alter sequence ends_id_seq as bigint" in shown.stdout
    assert dbdyno("advise", dsn, "-o", "advice.html", cwd=tmp_path).returncode == 0
    assert "ends_id_seq" in (tmp_path / "advice.html").read_text()
    assert "1. key\\_end" in dbdyno("advise", dsn, "--format", "markdown", "--only", "key_end").stdout
    rows = dbdyno("advise", dsn, "--format", "csv", "--only", "key_end").stdout.splitlines()
    assert rows[0].startswith("number,rule,family,level") and len(rows) == 2
