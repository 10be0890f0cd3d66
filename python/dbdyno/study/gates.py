"""Validity gates of a run: the checks of `dbdyno.stats.gates` on its evidence, and what is said
aloud when a condition was wrong. A gate never changes a verdict; it stands beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.run import Block, Run
from dbdyno.study import logs
from dbdyno.study.measures import BATCHES_MIN, QUANTILES, Measures

if TYPE_CHECKING:
    from dbdyno.stats.gates import Gate
    from dbdyno.study.pictures import Latencies

CANARIES = {
    "cpu_ns": "CPU canary",
    "fsync_ns": "fsync canary",
    "round_trip_ns": "round trip canary",
}
CLIENT_CPU_MAX = 0.8
LAG_MAX_NS = 1_000_000
RISKY = {
    "fsync": "commits do not wait for the disk at all; a crash loses the database",
    "synchronous_commit": "commits do not wait for the disk",
    "full_page_writes": "less redo is written than a durable server writes",
}


def examine(
    run: Run, measures: Measures, model: dict[str, Any], latencies: Latencies
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All gates, and the warnings that follow from those that do not hold."""
    found = list(_gates(run, measures, model, latencies))
    gates = [asdict(gate) for gate in found]
    warnings = [
        {"code": "gate", "text": f"'{gate.name}' does not hold: {gate.text}", "next": gate.next}
        for gate in found
        if gate.ok is False
    ]
    return gates, warnings + list(_conditions(run, measures))


def _gates(run: Run, measures: Measures, model: dict[str, Any], latencies: Latencies) -> Iterator[Gate]:
    import numpy as np

    from dbdyno.stats import gates

    several = len(measures.arms) > 1
    blocks = measures.arms[0].blocks
    if several:
        main = next((m for m in model["metrics"]), None)
        yield gates.enough_blocks(main["blocks"] if main else len(blocks))
        work = {arm.label: _mean(arm.values["rows"]) for arm in measures.arms}
        if model["run"]["switch"] != "model":
            yield gates.equal_work("rows", work)
    if model["run"]["open_loop"]:
        yield from _open_loop(measures)
    if model["run"]["switch"] == "model":
        yield from _invariants(blocks)
    else:
        yield gates.truncation({a.label: v for a, v in zip(measures.arms, latencies, strict=True)})
        yield from _in_time(measures, blocks)
    if several:
        size = measures.batch_size("p99")
        if len(blocks) // size < BATCHES_MIN:
            counts = [int(c) for arm in measures.arms for c in np.nan_to_num(arm.values["count"])]
            yield gates.tail_support("p99", QUANTILES["p99"], counts)


def _in_time(measures: Measures, blocks: list[Block]) -> Iterator[Gate]:
    """What real time may do to a run: drift, and blocks that depend on the ones before."""
    import numpy as np

    from dbdyno.stats import gates

    at_s = [(block.started_ns - blocks[0].started_ns) / 1e9 for block in blocks]
    yield gates.drift("mean latency", measures.arms[0].values["mean"], at_s)
    for name, label in CANARIES.items():
        values = [block.canaries.get(name, float("nan")) for block in blocks]
        yield gates.drift(label, values, at_s)
    for _, arm in measures.compared():
        n = min(len(arm.values["mean"]), len(blocks))
        base = measures.arms[arm.base].values["mean"]
        yield gates.independent_blocks(np.log(arm.values["mean"][:n]) - np.log(base[:n]))


def _invariants(blocks: list[Block]) -> Iterator[Gate]:
    """What must hold in every block of a model, to the nanosecond and the byte."""
    from dbdyno.stats.gates import Gate

    found = [block.report["invariants"] for block in blocks]
    stations, sessions = sum(f["stations"] for f in found), sum(f["sessions"] for f in found)
    for key, name, looked in (
        ("little", "Little's law at every station", f"{stations} stations"),
        ("ledgers", "elapsed = CPU + waits for every session", f"{sessions} sessions"),
        ("conservation", "bytes made = bytes written + bytes held", f"{len(found)} blocks"),
    ):
        broken = sum(not f[key] for f in found)
        yield Gate(
            name,
            not broken,
            f"looked at in {looked}, exactly" if not broken else f"broken in {broken} blocks",
            "this is a defect of dbdyno: please report it",
        )


def _mean(values: Any) -> float:
    """Mean of what is known; NaN where nothing is."""
    import numpy as np

    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _open_loop(measures: Measures) -> Iterator[Gate]:
    from dataclasses import replace

    from dbdyno.stats import gates
    from dbdyno.stats.words import duration

    for at, arm in enumerate(measures.arms):
        skipped = int(sum(arm.values["skipped"]))
        arrivals = int(sum(arm.values["count"])) + skipped
        yield replace(gates.given_up(skipped, arrivals), name=f"all arrivals of {arm.label} served")
        lags = [own["lag_max_ns"] for b in arm.blocks for own in b.report["arms"] if own["arm"] == at]
        late = sum(lag > LAG_MAX_NS for lag in lags)
        yield gates.Gate(
            f"generator keeps the schedule of {arm.label}",
            late <= len(lags) / 10,
            f"in {late} of {len(lags)} blocks an arrival started more than 1 ms late for want of "
            f"the generator, at worst {duration(max(lags, default=0))}",
            "lower the rate, add sessions, or free a core for the generator",
        )


def _conditions(run: Run, measures: Measures) -> Iterator[dict[str, Any]]:
    """What was wrong with the conditions, each with its next step."""
    import os

    blocks = measures.arms[0].blocks
    wall = sum(block.report.get("wall_ns", 0) for block in blocks)
    cpu = sum(block.report.get("cpu_ns", 0) for block in blocks)
    cores = os.cpu_count() or 1
    is_live = run.manifest["switch"] != "model"
    if is_live and wall and cpu / wall > CLIENT_CPU_MAX * cores:
        yield _warning(
            "busy client",
            f"the load generator used {cpu / wall:.1f} of {cores} cores",
            "fewer sessions, or run dbdyno on another machine than the engine",
        )
    lost = sum(block.report["reconnects"] for block in blocks)
    if lost:
        yield _warning(
            "reconnects",
            f"{lost} connection(s) were lost and opened again",
            "look into the engine's log; the blocks are marked",
        )
    first = [own["first_error"] for b in blocks for own in b.report["arms"] if own["first_error"]]
    failed = sum(float(sum(arm.values["failed"])) for arm in measures.arms)
    if failed:
        said = f", the first: {first[0]}" if first else ""
        yield _warning(
            "errors",
            f"{failed:.0f} transactions failed{said}",
            "failed transactions count as no throughput and give no latency",
        )
    for facts in run.manifest["targets"].values():
        for setting in facts.get("settings", []):
            if setting["name"] in RISKY and setting["value"] == "off":
                yield _warning(
                    "not durable",
                    f"{setting['name']} = off: {RISKY[setting['name']]}",
                    "say so wherever you show these numbers",
                )
        if facts.get("data_in_memory"):
            yield _warning(
                "memory file system",
                "the data lie in memory: there is no disk to wait for",
                "set TMPDIR to a folder on a disk",
            )
    yield from logs.warnings(run)
    if len(blocks) < run.manifest["blocks_planned"]:
        yield _warning(
            "cut short",
            f"{len(blocks)} of {run.manifest['blocks_planned']} blocks are whole",
            f"finish it: dbdyno run --resume {run.id}",
        )


def _warning(code: str, text: str, step: str) -> dict[str, Any]:
    return {"code": code, "text": text, "next": step}
