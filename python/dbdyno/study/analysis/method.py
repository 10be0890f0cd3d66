"""How a run measured and judged, in sentences made from the run itself; the engine's facts; the cost of observation."""

from __future__ import annotations

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.contract.rows import MethodRow, Overhead
from dbdyno.study.analysis.measured.measures import expected_of, part_of, summaries, throughput
from dbdyno.study.plan.network import network_text
from dbdyno.study.plan.plan import plan_from_dict

QUAD = 4


def method(run: Run) -> MethodRow:
    """Return the method in sentences, and the cost of observation."""
    manifest = run.manifest
    judge, schedule = manifest.plan["judge"], manifest.plan["schedule"]
    level, threshold = judge["level"] * 100, judge["threshold"] * 100
    sentences = [_switch_sentence(manifest)]
    if manifest.reads["virtual"] and schedule.get("warmup_transactions"):
        sentences.append(
            f"The first {schedule['warmup_transactions']} transactions of each session do not "
            "count; after them, sessions wait for each other."
        )
    operation = judge.get("operation", "transaction")
    if operation != "transaction":
        sentences.append(f"Latencies are those of the {operation} alone; throughput counts whole transactions.")
    if schedule["warmup_blocks"]:
        sentences.append(f"{schedule['warmup_blocks']} warm-up block(s) were recorded and do not count.")
    if any(arm["rate_per_s"] for arm in manifest.arms):
        sentences.append(
            "Open loop: latency counts from the intended start, so a stall of the engine is "
            "visible even though the load waits for it."
        )
    elif manifest.switch != "imported":
        sentences.append("Closed loop: each session starts its next transaction as soon as the previous one is done.")
    sentences += _lines(run)
    sentences += [
        "The unit of inference is the block. Each block gives one number per arm and metric. "
        "The log of the arms' ratio is one observation. Intervals are Student's t at "
        f"{level:g} % over blocks; a studentised bootstrap over blocks is shown beside them.",
        "If a block has fewer than ten operations beyond a quantile, neighbouring blocks are pooled for this quantile.",
        f"Differences within {threshold:g} % count as none. The headline metric was named before "
        "the run and is tested by itself; the others share a false-discovery rate "
        "(Benjamini and Hochberg).",
        "The tests of Welch, Mann-Whitney and Kolmogorov-Smirnov assume independent operations, but "
        "operations depend on each other. These tests are shown and decide nothing.",
    ]
    if manifest.resumed:
        sentences.append(
            f"The run was interrupted and resumed {len(manifest.resumed)} time(s), each time after a new warm-up."
        )
    return {"sentences": sentences, "overhead": overhead(run)}


def _switch_sentence(manifest: Manifest) -> str:
    if manifest.reads["virtual"]:
        return (
            "The run used virtual time. Each block is a replication: every arm begins in the same state "
            f"and draws the same random numbers (seed {manifest.seed}), so arms are "
            "paired. Blocks are independent of each other. The machine that ran the simulation does "
            "not affect the results."
        )
    if manifest.switch == "imported":
        return "The run was imported: another program ran it, and its order was not drawn at random."
    if manifest.switch == "slices":
        return (
            f"The arms alternated in slices of {(manifest.slice_ns or 0) / 1e6:g} ms, in randomised "
            f"ABBA order (seed {manifest.seed}), because {manifest.switch_reason}."
        )
    if len(manifest.arms) == 1:
        return f"One arm ran in blocks (seed {manifest.seed})."
    return (
        f"The arms alternated in turns, because {manifest.switch_reason}. Each block has one turn of every arm, "
        f"in an order drawn from seed {manifest.seed} and mirrored in the next block."
    )


def _lines(run: Run) -> list[str]:
    """Return a sentence on the sessions behind an emulated network, and on how late the network delivered data."""
    manifest = run.manifest
    plan = plan_from_dict(manifest.plan)
    lengths = {arm.name: network_text(plan.network_of(arm)) for arm in plan.arms if plan.network_of(arm)}
    if not lengths:
        return []
    told = ", ".join(f"{name} ({given})" for name, given in lengths.items())
    reports = [line for block in run.blocks() if block.kind == "measure" for line in block.report.get("lines", [])]
    pieces = sum(line["pieces"] for line in reports)
    late = ""
    if pieces:
        mean_us = sum(line["late_ns"] for line in reports) / pieces / 1e3
        most_us = max(line["late_max_ns"] for line in reports) / 1e3
        late = f" It released delayed data {mean_us:,.0f} us late on average, {most_us:,.0f} us at most."
    return [
        f"The sessions of these arms used a simulated network line in dbdyno, which delays data each way: {told}; "
        f"the connection that watches the engine did not.{late}"
    ]


def overhead(run: Run) -> Overhead | None:
    """Return the cost of observation as a change of the base arm's throughput, from slices with and without it.

    The result is None if there are fewer than two pairs of such slices.
    """
    from dbdyno.stats.blocks import compare_blocks
    from dbdyno.stats.wording import interval

    name = run.manifest.arms[0]["name"]
    with_it, without = [], []
    for block in run.blocks():
        if block.kind == "overhead" and run.calls_part(block).exists():
            for quad in range(0, len(block.slices), QUAD):
                with_it.append(_rate(run, block, name, quad, watched=True))
                without.append(_rate(run, block, name, quad, watched=False))
    if len(with_it) < 2:
        return None
    c = compare_blocks(without, with_it, higher_is_better=True)
    if c.blocks < 2:
        return None
    cost = 1 - c.ratio
    text = (
        f"Watching changed the throughput of {name} by {-cost * 100:+.1f} % ({interval(c)}, "
        f"{c.blocks} pairs of half a second). It affects all arms alike."
    )
    return {"text": text, "ratio": c.ratio, "low": c.low, "high": c.high}


def _rate(run: Run, block: Block, arm: str, quad: int, *, watched: bool) -> float:
    """Return the throughput in either the observed or the unobserved slices of one group of `QUAD` slices."""
    keep = {s.slice for s in block.slices[quad : quad + QUAD] if s.watched == watched}
    path, _ = part_of(run, block)
    drop = [s.slice for s in block.slices if s.slice not in keep]
    rows = summaries([[(path, drop)]], [], expected=expected_of(run))
    return next((throughput(row) for row in rows if row["arm"] == arm), float("nan"))


def engine(run: Run) -> JsonObject:
    """Return the facts and settings of the engine; if the arms have different engines, those of the first."""
    facts = dict(next(iter(run.manifest.targets.values()), {}))
    settings = facts.pop("settings", [])
    return {"facts": facts, "settings": settings}
