"""Faults of a benchmark itself, each planted in a real run: its rule fires with its figure; a sound run has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import choose_rules, judge
from dbdyno.advise.kinds import Benchmark, Measurements, Server, Setting
from dbdyno.advise.run import read
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start

PLAN = """\
title = "a benchmark"
target = "{dsn}"
[workload]
scripts = [{{name = "s", text = '''{script}'''}}]
[load]
sessions = {sessions}
{load}
[schedule]
blocks = {blocks}
warmup_blocks = {warmup}
turn = "{turn}"
[watch]
overhead_blocks = 0
activity_hz = 50
{verdict}
[[arm]]
name = "base"
"""
SETTINGS: dict[str, Any] = {"shared_buffers": "8MB", "autovacuum": "off"}
SETUP = (
    "create table counters (id int primary key, n int)",
    "insert into counters select i, 0 from generate_series(1, 50) i",
    "create table heap (id serial, n int)",
    "checkpoint",
)
LARGE = (
    "create table large (id int primary key, n int, note text)",
    "insert into large select i, i, repeat('x', 200) from generate_series(1, 120000) i",
    "vacuum analyze large",
    "checkpoint",
)
ONE_ROW = "update counters set n = n + 1 where id = 7;"
READS = "\\set i random(1, 120000)\nselect n, note from large where id = :i;"
GROWS = "insert into heap (n) select i from generate_series(1, 20) i;\nselect count(*) from heap;"
AT_ONCE = "select pg_sleep(0.03 - extract(epoch from clock_timestamp())::numeric % 0.03);"
PAUSES = "begin;\nselect n from large where id = 5;\n\\sleep 4 ms\ncommit;"
TIMED = "select pg_sleep(0.05);"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    import planted_faults as planted

    with EmbeddedPostgres(settings=SETTINGS) as running:
        planted.run(running, *SETUP)
        yield running


@pytest.fixture(scope="module")
def with_large(server: EmbeddedPostgres) -> EmbeddedPostgres:
    """Return the server with a table that does not fit into its shared buffers."""
    import planted_faults as planted

    planted.run(server, *LARGE)
    return server


def advised(server: EmbeddedPostgres, folder: Path, script: str, **more: Any) -> dict[str, Any]:
    """Run this script as a benchmark, and return what the rules for benchmarks find in the run."""
    known = {"sessions": 4, "load": "", "blocks": 6, "warmup": 1, "turn": "400ms", "verdict": ""}
    text = PLAN.format(dsn=make_conninfo("", **server.tcp_conninfo()), script=script, **{**known, **more})
    run = start(parse_plan(text, folder / "plan.toml"), folder, seed=3)
    analyse(run)
    model = judge(read(run), choose_rules(["benchmark"]))
    print([(one["rule"], one["sentence"]) for one in model["findings"]], model["not_judged"])
    return model


def of(model: JsonObject, rule: str) -> JsonObject:
    """The finding of a rule, with its figures by name."""
    one = next(one for one in model["findings"] if one["rule"] == rule)
    return one | {"figures": {each["what"]: each["value"] for each in one["evidence"]}}


def test_one_hot_row_and_writes_without_autovacuum_and_checkpoints(server: EmbeddedPostgres, tmp_path: Path) -> None:
    model = advised(server, tmp_path, ONE_ROW, turn="150ms")
    found = of(model, "hot_block")
    assert found["subject"] in ("transactionid", "tuple") and found["figures"]["waits for locks and latches"] > 0.4
    assert of(model, "unvacuumed_benchmark")["figures"]["rows written by a transaction"] == pytest.approx(1, rel=0.4)
    assert of(model, "no_checkpoints")["figures"]["checkpoints"] == 0


@pytest.mark.soak
def test_a_sound_run_of_look_ups_has_none(with_large: EmbeddedPostgres, tmp_path: Path) -> None:
    model = advised(with_large, tmp_path, READS, sessions=2, blocks=8, turn="600ms")
    assert [one["rule"] for one in model["findings"]] == []
    assert {"hot_block", "no_physical_io", "lock_step", "growing_work", "too_few_results"} <= set(model["clean"])


@pytest.mark.soak
def test_work_that_grows_with_the_data(server: EmbeddedPostgres, tmp_path: Path) -> None:
    figures = of(advised(server, tmp_path, GROWS, sessions=1, turn="900ms", blocks=8), "growing_work")["figures"]
    assert figures["rows read at the end"] > 1.3 * figures["rows read at the beginning"]


@pytest.mark.soak
def test_clients_in_lock_step(server: EmbeddedPostgres, tmp_path: Path) -> None:
    model = advised(server, tmp_path, AT_ONCE, turn="900ms")
    assert of(model, "lock_step")["figures"]["starts just after another session's"] > 0.3
    figures = of(model, "no_physical_io")["figures"]
    assert figures["read calls per transaction"] < 0.01


@pytest.mark.soak
def test_a_client_that_pauses_inside_of_its_transaction(with_large: EmbeddedPostgres, tmp_path: Path) -> None:
    figures = of(advised(with_large, tmp_path, PAUSES), "client_bound")["figures"]
    assert figures["ClientRead inside of transactions"] > 0.5


@pytest.mark.soak
def test_a_tail_in_a_closed_loop_from_too_few_blocks(with_large: EmbeddedPostgres, tmp_path: Path) -> None:
    model = advised(with_large, tmp_path, READS, blocks=3, verdict='[verdict]\nmetric = "p99"')
    assert of(model, "closed_loop")["figures"]["metric of the verdict"] == "p99"
    assert of(model, "too_few_results")["figures"]["blocks that count"] == 3


SERVER = Server("postgres", "17.2", 170002)


def measured(**more: Any) -> Measurements:
    """Return the measurements of a sound run, changed by the arguments."""
    known: dict[str, Any] = {
        "sessions": 4,
        "arms": 1,
        "blocks": 8,
        "warmup_blocks": 2,
        "transactions": 10_000,
        "mean_ns": 1e6,
        "per_s": (1000.0, 1010.0, 990.0, 1005.0, 995.0, 1000.0, 1003.0, 998.0),
        "reads": 1.5,
        "waits": (("CPU", "CPU", 0.9), ("data read", "DataFileRead", 0.1)),
        "client_cores": 0.3,
        "client_threads": 2,
        "near": 0.06,
        "rows_read": (1.0,) * 8,
        "rows_there": (1e5,) * 8,
        "written": 3.0,
        "checkpoints": 4,
    }
    return Measurements(**{**known, **more})


def fired(one: Measurements, *settings: Setting, metric: str = "throughput") -> dict[str, JsonObject]:
    run = Benchmark("", None, None, True, metric, 60.0)
    facts = Facts("run", "run", {Server: [SERVER], Setting: list(settings), Measurements: [one], Benchmark: [run]})
    return {found["rule"]: found for found in judge(facts, choose_rules(["benchmark"]))["findings"]}


@pytest.mark.parametrize(
    ("rule", "fault", "sound"),
    [
        ("no_physical_io", {"reads": 0.001, "waits": (("CPU", "CPU", 1.0),)}, {"reads": 0.02}),
        (
            "hot_block",
            {"waits": (("latch", "BufferContent", 0.5),)},
            {"waits": (("CPU", "CPU", 0.8), ("latch", "BufferContent", 0.2))},
        ),
        ("client_bound", {"client_cores": 1.9}, {"client_cores": 1.0}),
        ("client_bound", {"waits": (("client", "ClientRead", 0.7),)}, {"waits": (("client", "ClientRead", 0.3),)}),
        ("lock_step", {"near": 0.8}, {"near": 0.2}),
        (
            "growing_work",
            {"rows_read": (10.0,) * 4 + (50.0,) * 4, "rows_there": (1e5,) * 4 + (2e5,) * 4},
            {"rows_read": (10.0,) * 4 + (50.0,) * 4},
        ),
        ("no_work", {"rows_read": (0.0,) * 8, "written": 0.0}, {"rows_read": (0.0,) * 8}),
        (
            "warm_up_counted",
            {"per_s": (500.0, 1000.0, 990.0, 1005.0, 995.0, 1000.0)},
            {"per_s": (900.0, 1000.0, 990.0, 1005.0, 995.0, 1000.0)},
        ),
        ("no_checkpoints", {"checkpoints": 2}, {"checkpoints": 3}),
        ("too_few_results", {"per_s": (1000.0,) * 4}, {"per_s": (1000.0, 1001.0, 999.0, 1003.0, 1000.0)}),
        ("too_few_results", {"per_s": (1000.0, 1000.001, 999.999, 1000.0, 1000.0)}, {}),
    ],
)
def test_a_rule_fires_on_its_fault_and_not_below(rule: str, fault: JsonObject, sound: JsonObject) -> None:
    found = fired(measured(**fault))
    assert rule in found and found[rule]["evidence"], list(found)
    assert rule not in fired(measured(**sound))


def test_a_sound_run_has_none_and_settings_and_metrics_have_theirs() -> None:
    assert fired(measured()) == {}
    assert set(fired(measured(), Setting("autovacuum", "off"))) == {"unvacuumed_benchmark"}
    assert set(fired(measured(), metric="p99")) == {"closed_loop"}


def test_what_was_not_measured_is_said() -> None:
    less = measured(reads=None, rows_read=None, written=None, checkpoints=None, waits=(), near=None)
    facts = Facts(
        "run",
        "run",
        {
            Server: [SERVER],
            Setting: [],
            Measurements: [less],
            Benchmark: [Benchmark("", None, None, True, "throughput", 60.0)],
        },
    )
    told = {one["rule"] for one in judge(facts, choose_rules(["benchmark"]))["not_judged"]}
    assert {"no_physical_io", "hot_block", "no_checkpoints", "growing_work", "no_work", "lock_step"} <= told
    assert json.dumps(sorted(told))
