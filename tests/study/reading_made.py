"""A synthetic run of reads by key, as from a server with known costs, like those of `live_made.py`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from live_made import CALLS, METRICS, WAITS, _rest, _write, manifest_of

from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from dbdyno.study.plan.file import parse_plan

STATEMENT = "select v from big where id = :id"
PLAN = """
title = "made"
[workload]
scripts = [{{text = "\\\\set id {keys}\\n{statement};\\n"}}]
[[arm]]
name = "one"
[[arm]]
name = "four"
sessions = 4
[[arm]]
name = "larger"
settings = {{shared_buffers = "50MB"}}
[[arm]]
name = "sorts"
settings = {{work_mem = "64kB"}}
"""


@dataclass(frozen=True)
class Reading:
    """Costs of the server [us]; its table has 100 MB, and the size of its index is unknown."""

    server_us: float = 60.0
    client_us: float = 10.0
    read_us: float = 800.0
    inside_us: float = 15.0
    misses: float = 0.9
    cached: float = 0.0
    spilled: int = 0
    keys: str = "random(1, 1000000)"
    sizes: bool = True
    mounted: bool = False


def reading_run(folder: Path, truth: Reading, *, blocks: int = 6, transactions: int = 500) -> Run:
    """Write a run whose arm `one` is the work of such a server for one session; arm `four` has four processes."""
    random_ = random.Random(3)
    plan = parse_plan(PLAN.format(keys=truth.keys, statement=STATEMENT), folder / "plan.toml")
    settings = {"shared_buffers": "10MB", "work_mem": "4MB"}
    facts = {"version_num": 150018, "host_cpus": 4}
    facts["settings"] = [{"name": name, "value": value} for name, value in settings.items()]
    about, manifest = manifest_of("postgres", "host=here", facts, plan, (1, blocks))
    if truth.mounted:
        volume = {"target": "host=here", "carries": "data", "device": "gp3", "settings": {"iops": "6000"}}
        manifest["volumes"] = [{**volume, "title": "", "direct_io": True, "polls": False, "floor_ns": 0}]
    run = new_run(folder, "made", manifest, name="made")
    for block in range(blocks):
        _block(run, random_, truth, block, transactions, about)
    run.save(status="complete")
    return run


def _block(run: Run, random_: random.Random, truth: Reading, block: int, transactions: int, about: list[dict]) -> None:
    calls, waits, metrics, reports = [], [], [], []
    for number, arm in enumerate(about):
        start, inside, waited = 10**15 + block * 10**11 + number * 10**10, 0, 0
        for session in range(arm["sessions"]):
            now = start + session * 1_000
            for _ in range(transactions):
                # With larger buffers as much is missed as is not in them.
                missed = 0.5 if arm["name"] == "larger" else truth.misses
                events = ["DataFileRead"] * int(random_.random() < missed)
                events += ["BufFileWrite", "BufFileRead"] * truth.spilled
                length = round((truth.server_us + truth.client_us + random_.expovariate(1 / 5.0)) * 1_000)
                at = now + length // 2
                for event in events:
                    device_us = random_.lognormvariate(0, 0.2) * truth.read_us
                    if truth.cached and random_.random() < truth.cached:
                        device_us = 1.0
                    spent = round((device_us + truth.inside_us) * 1_000)
                    row = (arm["name"], block, 70 + number * 10 + session, at, spent, event, "IO", "data read")
                    waits.append((*row, "client backend", "exact", None, None, None))
                    at, length = at + spent, length + spent
                    inside, waited = inside + round(truth.inside_us * 1_000), waited + 1
                calls.append(
                    (arm["name"], block, number, session, "transaction", STATEMENT, None, now, length, 1, *_rest())
                )
                now += length
        done = transactions * arm["sessions"]
        on_cpu = round(done * truth.server_us * 1_000) + inside
        metrics.append((arm["name"], block, "probes", "arm", arm["name"], "cpu_in_waits", start, inside, "ns", "gauge"))
        events = ["IO:DataFileRead"] if not truth.spilled else []
        for event in events:
            row = (arm["name"], block, "probes", "wait", f"{arm['name']}/{event}", "cpu_in_wait", start, inside)
            metrics.append((*row, "ns", "gauge"))
        report = {"arm": number, "transactions": done, "errors": 0, "retries": 0, "skipped": 0, "busy_ns": now - start}
        report |= {"lag_max_ns": 0, "first_error": None, "user_ns": on_cpu // 2, "system_ns": on_cpu - on_cpu // 2}
        reports.append({**report, "on_cpu_ns": on_cpu})
    if truth.sizes:
        for metric, value in (("n_live_tup", 1e6), ("idx_scan", 10.0 + block), ("size_bytes", 100 * 2**20)):
            row = ("", block, "pg_stat_user_tables", "table", "public/big", metric, 10**15, float(value))
            metrics.append((*row, "count", "gauge"))
    metrics = [(*row[:7], float(row[7]), *row[8:]) for row in metrics]
    _write(run, block, {"calls": (CALLS, calls), "waits": (WAITS, waits), "metrics": (METRICS, metrics)})
    trips = sum(report["transactions"] for report in reports)
    report = {"cpu_ns": round(trips * truth.client_us * 1_000), "threads": 1, "arms": reports, "reconnects": 0}
    slices = [SliceRecord(number, number) for number in range(len(about))]
    run.add_block(Block(block, "measure", 0, 1, len(calls), slices, report=report, canaries={"fsync_ns": 500_000}))
