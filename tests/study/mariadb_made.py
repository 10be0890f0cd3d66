"""A synthetic run on MariaDB, as from a server with known costs, which a calibration must find."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from live_made import CALLS, METRICS, _rest, _write, manifest_of

from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.prediction.costs import CLIENT_INSIDE, COLD_US

SIZES = (100, 2_000, 8_000)
SCRIPT = "begin;\\ninsert into t (text) values (repeat('x', {size}));\\ncommit;\\n"
ARMS = {
    "one": "",
    "written": 'settings = {innodb_flush_log_at_trx_commit = "2"}',
    "off": 'settings = {innodb_flush_log_at_trx_commit = "0"}',
    "eight": "sessions = 8",
    "binary": 'server = {settings = {log_bin = "changes", sync_binlog = "1"}}',
    "dsync": 'server = {settings = {innodb_flush_method = "O_DSYNC"}}',
}


@dataclass(frozen=True)
class Truth:
    """Costs of the server [us]; log of a commit besides the text [bytes]."""

    server_us: float = 120.0
    client_us: float = 8.0
    flush_us: float = 69.0
    write_us: float = 5.0
    sync_us: float = 700.0
    sync_us_per_kb: float = 10.0
    delay_us: float = 40.0
    wal_bytes: float = 400.0


def plan_text() -> str:
    """The plan: every arm writes texts of all sizes."""
    scripts = ", ".join(f'{{name = "{size}", text = "{SCRIPT.format(size=size)}"}}' for size in SIZES)
    arms = "".join(f'[[arm]]\nname = "{name}"\n{keys}\n' for name, keys in ARMS.items())
    return f'title = "made"\ntarget = "mariadb"\n[workload]\nscripts = [{scripts}]\n{arms}'


def mariadb_run(folder: Path, truth: Truth, *, seed: int = 1, blocks: int = 6, transactions: int = 150) -> Run:
    """Write a run whose single-session arms are the work of such a server; the same seed gives the same run."""
    dice = random.Random(seed)
    plan = parse_plan(plan_text(), folder / "plan.toml")
    facts = {
        "version": "MariaDB 10.11.19-MariaDB",
        "host_cpus": 4,
        "settings": [{"name": "innodb_buffer_pool_size", "value": "256M"}],
    }
    about, manifest = manifest_of("mariadb", "mariadb here", facts, plan, (seed, blocks))
    run = new_run(folder, "made", manifest, name="made")
    for block in range(blocks):
        _block(run, dice, truth, block, transactions, about)
    run.save(status="complete")
    return run


def _block(run: Run, dice: random.Random, truth: Truth, block: int, transactions: int, about: list[dict]) -> None:
    calls, reports = [], []
    for number, arm in enumerate(about):
        now = begin = 10**15 + block * 10**11 + number * 10**10
        method = arm["changes"].get("innodb_flush_log_at_trx_commit", "1")
        for _ in range(transactions):
            started, size = now, dice.choice(SIZES)
            statements = ("begin", f"insert into t (text) values (repeat('x', {size}))", "commit")
            for kind, statement in zip(("begin", "exec", "commit"), statements, strict=True):
                us = truth.server_us / 3 + truth.client_us * CLIENT_INSIDE + dice.expovariate(1 / truth.delay_us)
                if kind == "commit":
                    us += {"1": truth.flush_us, "2": truth.write_us, "0": 0.0}[method]
                if kind == "commit" and method == "1":
                    kb = (size + truth.wal_bytes) / 1024
                    us += dice.lognormvariate(0, 0.2) * truth.sync_us + truth.sync_us_per_kb * kb
                length = round(us * 1_000)
                calls.append((arm["name"], block, number, 0, kind, statement, None, now, length, 1, *_rest()))
                now += length
            row = (arm["name"], block, number, 0, "transaction", str(size), None, started, now - started, 1)
            calls.append((*row, *_rest()))
        # Each statement, and a commit's return from its sync, finds its core idle.
        reload_us = COLD_US * (len(statements) + 1)
        on_cpu = round(transactions * (truth.server_us + reload_us + truth.flush_us * (method != "0")) * 1_000)
        report = {"arm": number, "transactions": transactions, "errors": 0, "retries": 0, "skipped": 0}
        report |= {"busy_ns": now - begin, "lag_max_ns": 0, "first_error": None}
        reports.append(report | {"user_ns": on_cpu // 4, "system_ns": on_cpu - on_cpu // 4, "on_cpu_ns": on_cpu})
    mean = truth.wal_bytes + sum(SIZES) / len(SIZES)
    row = ("", block, "global status", "instance", "", "innodb_lsn_current")
    ends = enumerate((0.0, mean * transactions * len(about)))
    metrics = [(*row, 10**15 + at, value, "count", "counter") for at, value in ends]
    _write(run, block, {"calls": (CALLS, calls), "metrics": (METRICS, metrics)})
    trips = transactions * len(about) * 3
    report = {"cpu_ns": round(trips * truth.client_us * 1_000), "threads": 1, "arms": reports, "reconnects": 0}
    slices = [SliceRecord(number, number) for number in range(len(about))]
    canaries = {"fsync_ns": truth.sync_us * 1_000}
    run.add_block(Block(block, "measure", 0, 1, len(calls), slices, report=report, canaries=canaries))
