"""A synthetic run on PostgreSQL, as from a server with known costs, which a calibration must find."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from dbdyno.cli.main import cli
from dbdyno.evidence.run import Block, Run, SliceRecord, find_run, new_run
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan
from dbdyno.study.prediction.fit import Machine, calibrate
from dbdyno.study.prediction.observation import observe, timed_waits

CALLS = (
    "arm varchar, block uinteger, slice uinteger, session usmallint, kind varchar, statement varchar,"
    " intended_ns bigint, started_ns bigint, elapsed_ns bigint, rows bigint, redo_bytes bigint, unflushed_bytes bigint,"
    " error varchar, tries utinyint, vendor_code usmallint, message varchar, expected boolean"
)
WAITS = (
    "arm varchar, block uinteger, session bigint, started_ns bigint, elapsed_ns bigint, event varchar,"
    " event_type varchar, class varchar, object varchar, fidelity varchar, p1 bigint, p2 bigint, p3 bigint"
)
METRICS = (
    "arm varchar, block uinteger, source varchar, object_type varchar, object varchar, metric varchar, at_ns bigint,"
    " value double, unit varchar, kind varchar"
)
TYPES = {
    "varchar": pa.string(),
    "uinteger": pa.uint32(),
    "usmallint": pa.uint16(),
    "utinyint": pa.uint8(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
ENCODED = {"arm": pa.uint16(), "kind": pa.uint8(), "statement": pa.uint16()}
STATEMENTS = ("begin", "update t set n = n + 1 where id = :id", "commit")
PLAN = """
title = "made"
[workload]
scripts = [{{text = "\\\\set id random(1, {rows})\\nbegin;\\nupdate t set n = n + 1 where id = :id;\\ncommit;\\n"}}]
[[arm]]
name = "one"
[[arm]]
name = "eight"
sessions = 8
[[arm]]
name = "off"
settings = {{synchronous_commit = "off"}}
"""


@dataclass(frozen=True)
class Truth:
    """Costs of the server [us]; log of a commit [bytes]; the modelled device below its files, if one was mounted."""

    server_us: float = 120.0
    client_us: float = 8.0
    flush_us: float = 25.0
    sync_us: float = 700.0
    delay_us: float = 40.0
    think_us: float = 60.0
    wal_bytes: float = 600.0
    rows: int = 1_000_000
    fidelity: str = "exact"
    mounted: str = ""


def manifest_of(
    bench: str, target: str, facts: dict[str, object], plan: Plan, size: tuple[int, int]
) -> tuple[list[dict], dict]:
    """Return the arms of a synthetic run and its manifest; `size` is its seed and its number of blocks."""
    about = [
        {
            "name": arm.name,
            "description": "",
            "sessions": plan.sessions_of(arm),
            "rate_per_s": None,
            "protocol": "prepared",
            "target": target,
            "changes": {**arm.settings, **(arm.server.settings if arm.server else {})},
            "how": {},
            "was": {},
            "against": None,
        }
        for arm in plan.arms
    ]
    return about, {
        "title": "made",
        "question": "",
        "bench": bench,
        "kind": "experiment",
        "reads": {"evidence": "operations", "virtual": False, "parts": []},
        "plan": plan.to_dict(),
        "arms": about,
        "targets": {target: facts},
        "switch": "turns",
        "switch_reason": "",
        "notes": [],
        "slice_ns": 10**9,
        "seed": size[0],
        "blocks_planned": size[1],
    }


def live_run(folder: Path, truth: Truth, *, seed: int = 1, blocks: int = 6, transactions: int = 150) -> Run:
    """Write a run whose arm `one` is the work of such a server for one session; the same seed gives the same run."""
    random_ = random.Random(seed)
    plan = parse_plan(PLAN.format(rows=truth.rows), folder / "plan.toml")
    facts = {"version_num": 150018, "host_cpus": 4, "settings": [{"name": "wal_writer_delay", "value": "100ms"}]}
    about, manifest = manifest_of("postgres", "host=here", facts, plan, (seed, blocks))
    manifest["switch"] = "slices"
    if truth.mounted:
        volume = {"target": "host=here", "carries": "data and log", "device": truth.mounted, "settings": {}}
        manifest["volumes"] = [{**volume, "title": "", "direct_io": False, "polls": False, "floor_ns": 0}]
    run = new_run(folder, "made", manifest, name="made")
    for block in range(blocks):
        _block(run, random_, truth, block, transactions, about)
    run.save(status="complete")
    return run


def _block(run: Run, random_: random.Random, truth: Truth, block: int, transactions: int, about: list[dict]) -> None:
    calls, waits, metrics, reports = [], [], [], []
    for number, arm in enumerate(about):
        now = 10**15 + block * 10**11 + number * 10**10
        begin, in_waits = now, 0
        for _ in range(transactions):
            started = now
            for at, statement in enumerate(STATEMENTS):
                us = truth.server_us / 3 + truth.client_us + random_.expovariate(1 / truth.delay_us)
                ends = statement == "commit" and arm["name"] != "off"
                sync_us = random_.lognormvariate(0, 0.2) * truth.sync_us + truth.flush_us if ends else 0.0
                length = round((us + sync_us) * 1_000)
                kind = ("begin", "exec", "commit")[at]
                calls.append((arm["name"], block, number, 0, kind, statement, None, now, length, 1, *_rest()))
                if ends:
                    sync = now + round(us * 500)
                    row = (arm["name"], block, 77, sync, round(sync_us * 1_000), "WALSync", "IO", "commit")
                    waits.append((*row, "client backend", truth.fidelity, None, None, None))
                    in_waits += round(truth.flush_us * 1_000)
                now += length
            calls.append(
                (arm["name"], block, number, 0, "transaction", "script", None, started, now - started, 1, *_rest())
            )
            now += round(truth.think_us * 1_000)
        on_cpu = round(transactions * truth.server_us * 1_000) + in_waits
        if in_waits and truth.fidelity == "exact":
            row = (
                arm["name"],
                block,
                "probes",
                "arm",
                arm["name"],
                "cpu_in_waits",
                now,
                float(in_waits),
                "ns",
                "gauge",
            )
            metrics.append(row)
        report = {"arm": number, "transactions": transactions, "errors": 0, "retries": 0, "skipped": 0}
        report |= {"busy_ns": now - begin, "lag_max_ns": 0, "first_error": None}
        report |= {"user_ns": on_cpu // 4, "system_ns": on_cpu - on_cpu // 4, "on_cpu_ns": on_cpu}
        reports.append(report)
    for at, value in enumerate((0.0, truth.wal_bytes * transactions * len(about))):
        metrics.append(("", block, "wal", "instance", "1", "insert_bytes", 10**15 + at, value, "bytes", "counter"))
    _write(run, block, {"calls": (CALLS, calls), "waits": (WAITS, waits), "metrics": (METRICS, metrics)})
    trips = transactions * len(about) * len(STATEMENTS)
    report = {"cpu_ns": round(trips * truth.client_us * 1_000), "threads": 1, "arms": reports, "reconnects": 0}
    slices = [SliceRecord(number, number) for number in range(len(about))]
    canaries = {"fsync_ns": truth.sync_us * 1_000}
    run.add_block(Block(block, "measure", 0, 1, len(calls), slices, report=report, canaries=canaries))


def _rest() -> tuple[object, ...]:
    return (None, None, None, 1, None, None, None)


def _write(run: Run, block: int, tables: dict[str, tuple[str, list]]) -> None:
    for name, (columns, rows) in tables.items():
        (run.path / name).mkdir(exist_ok=True)
        fields = [words.split() for words in columns.split(",")]
        made = {
            key: _column(name, key, TYPES[kind], values) for (key, kind), *values in zip(fields, *rows, strict=True)
        }
        pq.write_table(pa.table(made), run.path / name / f"b{block:06}.parquet")


def _column(table: str, key: str, kind: pa.DataType, values: list[object]) -> pa.Array:
    """Return a column; the texts of calls are dictionary-encoded, as by the recorder."""
    column = pa.array(values, kind)
    if table != "calls" or key not in ENCODED:
        return column
    encoded = column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(ENCODED[key]), encoded.dictionary)


def machine_of(runs: Path, arm: str) -> Machine:
    """Return the machine calibrated from an arm of the run `made`."""
    run = find_run("made", runs)
    return calibrate(timed_waits(observe(run, measure(run), arm)))


def value(machine: Machine, key: str) -> Any:
    return next(own.value for own in machine.parameters if own.key == key)


def model(*arguments: str) -> Result:
    """Run `dbdyno model`."""
    return CliRunner().invoke(cli, ["model", *arguments])
