"""Validity gates of a run: the checks of `dbdyno.stats.gates` on its evidence, their effects, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.checks import answers, base_level, client_cost, hosts, stalls
from dbdyno.study.analysis.contract.rows import ArmRow, Caution, GateRow, JudgeRow, Model, RunRow
from dbdyno.study.analysis.measured.measures import BATCHES_MIN, QUANTILES, ArmMeasures, Measures
from dbdyno.study.analysis.measured.timeline import timeline
from dbdyno.study.analysis.probe import logs

if TYPE_CHECKING:
    from dbdyno.stats.decide import WithheldVerdict
    from dbdyno.stats.gates import Gate
    from dbdyno.stats.gates_losses import Losses, LossWording
    from dbdyno.study.analysis.figure_data.pictures import Latencies

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
    "innodb_flush_log_at_trx_commit": "commits do not wait for the disk",
    "innodb_doublewrite": "a partly written page cannot be repaired after a crash",
}
UNSAFE_VALUES = ("off", "0", "2")
"""Values of the `RISKY` settings that make them unsafe: with 0 or 2, a commit does not wait for the flush."""


@dataclass(frozen=True)
class GateInput:
    """Input of the gates of a run, or of one arm of it.

    `codes` are failed transactions by SQLSTATE, per arm; `blocks` is the number of blocks with the headline metric in
    both arms.
    """

    run: Run
    measures: Measures
    latencies: Latencies
    connection: Any
    codes: list[dict[str, int]]
    facts: RunRow
    judge: JudgeRow
    kind: str
    blocks: int
    virtual: bool
    """True if the time is that of a model, in which there is no drift, stall or clock step."""


def all_gates(gate_input: GateInput) -> list[Gate]:
    """Return all gates of a run."""
    return [*gates_between_arms(gate_input), *gates_of_run(gate_input)]


def rows(gates: Sequence[Gate], judge: JudgeRow) -> list[GateRow]:
    """Return gates as rows of the model, with the effect of their failure on the verdict."""
    from dbdyno.base.decisions import RULES

    accepted = judge.get("accept", [])
    return [
        {
            "name": gate.name,
            "ok": gate.ok,
            "text": gate.text,
            "next": gate.next,
            "code": gate.code,
            "arm": gate.arm,
            "effect": "warns" if gate.code in accepted or gate.code not in RULES else RULES[gate.code].effect,
        }
        for gate in gates
    ]


def withheld_arms(gates: Sequence[Gate], measures: Measures, judge: JudgeRow) -> dict[str, WithheldVerdict]:
    """Return the arms without a verdict, by label, each with the first reason.

    A reason is a failed gate that withholds the verdict and whose failure the plan does not accept. It concerns the
    arm, its base, or the whole run.
    """
    from dbdyno.stats.decide import WithheldVerdict

    against = [gate for gate in gates if gate.withholds and gate.code not in judge.get("accept", [])]
    without = {}
    for at, arm in enumerate(measures.arms):
        base = measures.arms[arm.base]
        own = [gate for gate in against if gate.arm in ("", arm.label, base.label)]
        if own and (arm.base != at or len(measures.arms) == 1):
            dead = not _any_succeeded(arm) or not _any_succeeded(base)
            own.sort(key=lambda gate: not gate.reason.startswith("All "))
            without[arm.label] = WithheldVerdict(own[0].reason, "failed" if dead else "no verdict")
    return without


def withheld_arms_of_model(
    arms: Sequence[ArmRow], gates: Sequence[Gate], judge: JudgeRow
) -> dict[str, WithheldVerdict]:
    """Return the arms without a verdict, from the rows of the model alone: each gate concerns the whole run."""
    from dbdyno.stats.decide import WithheldVerdict

    against = [gate for gate in gates if gate.withholds and gate.code not in judge.get("accept", [])]
    return {str(arm["name"]): WithheldVerdict(against[0].reason) for arm in arms[1:] if against}


def withhold_verdict(model: Model, without: dict[str, WithheldVerdict]) -> None:
    """List the arms without a verdict, and withhold the verdict of the run if its arms are not judged one by one.

    Such runs are curves, sweeps, correlations, and an arm compared with itself. One arm without a verdict is enough to
    withhold the verdict of the run.
    """
    model["verdict"]["withheld"] = [
        {"arm": arm, "decision": held.decision, "reason": held.reason} for arm, held in without.items()
    ]
    if not without or model["kind"] == "experiment":
        return
    held = next((held for held in without.values() if held.decision == "failed"), next(iter(without.values())))
    reasons = dict.fromkeys(own.reason for own in without.values() if own.reason != held.reason)
    model["verdict"] |= {"decision": held.decision, "headline": held.reason, "sentences": list(reasons)}
    for row in model["metrics"]:
        row |= {"decision": held.decision, "words": held.decision}


def busy_processor_sentences(gates: Sequence[Gate]) -> list[str]:
    """Return the sentences to put before the answer if other programs used the processors."""
    at_fault = [gate for gate in gates if gate.code == "processors" and gate.ok is False]
    return [f"O{gate.text[1:]}: on an idle machine the answer may differ." for gate in at_fault]


def condition_warnings(run: Run, measures: Measures, virtual: bool) -> list[Caution]:
    """Return warnings about the conditions of the run, each with its next step."""
    return list(_conditions(run, measures, virtual))


def _any_succeeded(arm: ArmMeasures) -> bool:
    return bool(arm.total("transactions") or not arm.total("failed"))


def gates_between_arms(gate_input: GateInput) -> Iterator[Gate]:
    """Yield gates between the arms: errors, equal work, and whether there are enough blocks and transactions."""
    import numpy as np

    from dbdyno.stats import gates

    measures, judge = gate_input.measures, gate_input.judge
    compared = [(arm, measures.arms[arm.base]) for _, arm in measures.compared_arms()]
    yield from _loss_gates(gate_input)
    yield from answers.gates(measures)
    if not compared:
        return
    if all(map(_any_succeeded, measures.arms)):
        if gate_input.kind != "tune":  # a race keeps its level at every block
            yield gates.enough_blocks(gate_input.blocks, judge["level"])
        batches = min(len(arm.blocks) for arm in measures.arms) // measures.batch_size(judge["headline"])
        yield gates.blocks_missing(gate_input.blocks, max(batches - gate_input.blocks, 0))
    if not gate_input.virtual and (
        gate_input.kind in ("experiment", "aa") or (gate_input.kind == "sweep" and judge.get("equal_work"))
    ):
        for arm, base in compared:
            work, usual = (_mean(own.values["rows"]) for own in (arm, base))
            yield gates.equal_work("rows", arm.label, work, base.label, usual)
    if presumed := judge.get("tail_times"):
        base = compared[0][1]
        longest, median = (float(np.nanmax(base.values["max"])), float(np.nanmedian(base.values["p50"])))
        yield gates.has_tail(base.label, longest, median, presumed)
    if not gate_input.virtual:
        yield gates.truncation({a.label: v for a, v in zip(measures.arms, gate_input.latencies, strict=True)})
    if batches_of_p99(measures) < BATCHES_MIN:
        counts = [int(c) for arm in measures.arms for c in np.nan_to_num(arm.values["count"])]
        support = gates.tail_support("p99", QUANTILES["p99"], counts)
        # Too few values of a metric that decided nothing are not a failure: the result is unknown.
        yield support if judge["headline"] == "p99" or support.ok else replace(support, ok=None)


def gates_of_run(gate_input: GateInput) -> Iterator[Gate]:
    """Yield the gates that concern the run and not its arms: a model's invariants, or effects of real time."""
    if gate_input.virtual:
        yield from _invariants(gate_input.measures.arms[0].blocks)
        return
    if len(gate_input.measures.arms) == 1:
        from dbdyno.stats import gates

        yield gates.truncation({gate_input.measures.arms[0].label: gate_input.latencies[0]})
    yield from _operations(gate_input)
    yield from hosts.gates(gate_input.measures.arms[0].blocks)
    yield from _in_time(gate_input)


def batches_of_p99(measures: Measures) -> int:
    """Return the number of batches of blocks; each batch is large enough for one value of p99."""
    return min(len(arm.blocks) for arm in measures.arms) // measures.batch_size("p99")


def _loss_gates(gate_input: GateInput) -> Iterator[Gate]:
    """Yield gates on failed transactions and dropped arrivals (open loop): of each arm, and compared with its base."""
    from dbdyno.stats.gates_losses import ERRORS

    arms = gate_input.measures.arms
    lost = [
        _lost_of(arm, arm.total("failed"), arm.total("transactions") + arm.total("failed"), own)
        for arm, own in zip(arms, gate_input.codes, strict=True)
    ]
    yield from _lost_gates(gate_input, lost, ERRORS)
    if gate_input.facts["open_loop"]:
        yield from _open_loop(gate_input)


def _lost_of(arm: ArmMeasures, lost: int, tried: int, codes: dict[str, int]) -> Losses:
    from dbdyno.stats.gates_losses import Losses

    kinds = ", ".join(f"SQLSTATE {code}" for code in list(codes)[:2])
    return Losses(arm.label, lost, tried, kinds + (" ..." if len(codes) > 2 else ""))


def _lost_gates(gate_input: GateInput, losses: list[Losses], words: LossWording) -> Iterator[Gate]:
    """Yield a gate per arm, and one per arm and base if both passed theirs; a single gate if no arm lost anything."""
    from dbdyno.stats.gates import Gate
    from dbdyno.stats.gates_losses import equal_losses, few_losses

    if any(own.tried for own in losses) and not any(own.lost for own in losses):
        tried = sum(own.tried for own in losses)
        yield Gate(words.name, True, f"none of {tried:,} {words.noun} {words.verb}", code=words.code)
        return
    alone = [few_losses(own, words, losses[:2] if len(losses) == 2 else ()) for own in losses]
    yield from sorted(alone, key=lambda gate: gate.ok is not False)
    for at, arm in gate_input.measures.compared_arms():
        if alone[at].ok and alone[arm.base].ok:
            yield equal_losses(losses[at], losses[arm.base], words, gate_input.judge["threshold"])


def _open_loop(gate_input: GateInput) -> Iterator[Gate]:
    from dbdyno.stats import gates
    from dbdyno.stats.gates_losses import ARRIVALS
    from dbdyno.stats.wording import duration

    arms = gate_input.measures.arms
    lost = []
    for arm in arms:
        skipped = arm.total("skipped")
        lost.append(_lost_of(arm, skipped, arm.total("transactions") + arm.total("failed") + skipped, {}))
        lags = [own["lag_max_ns"] for b in arm.blocks for own in b.report["arms"] if own["arm"] == arm.number]
        late = sum(lag > LAG_MAX_NS for lag in lags)
        yield gates.Gate(
            f"generator keeps the schedule of {arm.label}",
            late <= len(lags) / 10,
            f"in {late} of {len(lags)} blocks the generator started an arrival more than 1 ms late, "
            f"at worst {duration(max(lags, default=0))}",
            "lower the rate, add sessions, or free a core for the generator",
            code="generator",
            arm=arm.label,
        )
    yield from _lost_gates(gate_input, lost, ARRIVALS)
    few = [own for own in lost if own.lost]
    if few:
        said = ", ".join(f"{own.lost:,} of {own.tried:,} arrivals of {own.arm}" for own in few)
        yield gates.Gate(
            "no arrival dropped",
            False,
            f"{said} were dropped: the true quantiles are worse than those shown",
            ARRIVALS.next,
            code="dropped",
        )


def _in_time(gate_input: GateInput) -> Iterator[Gate]:
    """Yield gates for effects of real time: drift, stalls, steps of the clock, dependent blocks."""
    import numpy as np

    from dbdyno.stats import gates_in_time as gates

    arms = gate_input.measures.arms
    blocks = arms[0].blocks
    known = timeline(blocks, gate_input.run.manifest.resumed)
    at_s = [known.begins_s[block.index] for block in blocks]
    label = f"mean {arms[0].operation} time of {arms[0].label}"
    yield from gates.base_level(label, arms[0].values["mean"], at_s, _ratios(gate_input, at_s))
    for _, arm in gate_input.measures.compared_arms():
        logs_of = np.log(arm.values["mean"]) - np.log(arms[arm.base].values["mean"])
        if gate_input.kind in ("experiment", "aa"):
            yield gates.steady_difference(arm.label, arms[arm.base].label, logs_of, at_s, gate_input.judge["threshold"])
        yield gates.independent_blocks(logs_of, arm.label)
    for name, label in CANARIES.items():
        values = [block.canaries.get(name, float("nan")) for block in blocks]
        if np.isfinite(values).any():
            yield gates.drift(label, values, at_s)
    limit_s = gates.stall_limit_s(stalls.usual_ns(gate_input.latencies))
    yield gates.no_stall(stalls.find(gate_input.connection, gate_input.measures, known.begins_s, limit_s), limit_s)
    yield gates.clock_kept(known.steps)
    shares = [block.report["others_share"] for block in blocks if "others_share" in block.report]
    if shares:
        yield gates.processors_free(float(np.mean(shares)), int(blocks[-1].report.get("processors", 0)))


def _ratios(gate_input: GateInput, at_s: list[float]) -> dict[str, str]:
    """Return, by compared arm, why a drift makes its ratio within blocks invalid; the text is empty if it is valid."""
    from dbdyno.study.analysis.questions import factors

    headline, threshold = gate_input.judge["headline"], gate_input.judge["threshold"]
    if gate_input.kind in ("experiment", "aa"):
        return base_level.invalid_ratios(gate_input.measures, headline, at_s, threshold)
    if gate_input.kind == "sweep":
        return base_level.moved_curve_arms(
            gate_input.measures, factors.curves_of(gate_input.run), headline, at_s, threshold
        )
    return {}


def _operations(gate_input: GateInput) -> Iterator[Gate]:
    """Yield gates on whether slices or turns have enough transactions, if the arms alternate."""
    import statistics

    from dbdyno.stats.gates import enough_operations

    if len(gate_input.measures.arms) < 2 or gate_input.facts["open_loop"]:
        return
    stretch = "slice" if gate_input.facts["switch"] == "slices" else "turn"
    counted = gate_input.run.manifest.plan["schedule"].get("turn_transactions") is not None
    for arm in gate_input.measures.arms:
        per_slice = [
            (done + lost) / (slices * arm.sessions)
            for block, done, lost in zip(arm.blocks, arm.values["transactions"], arm.values["failed"], strict=True)
            if (slices := sum(s.arm == arm.number and s.counts for s in block.slices))
        ]
        usual = statistics.median(per_slice) if per_slice else float("nan")
        yield enough_operations(arm.label, usual, stretch, counted=counted, waiting=arm.sessions > 1)


def _invariants(blocks: list[Block]) -> Iterator[Gate]:
    """Yield gates on the invariants of a model in every block, exact to the nanosecond and the byte."""
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
            f"exact in {looked}" if not broken else f"broken in {broken} blocks",
            "this is a defect of dbdyno: please report it",
            code="invariants",
            because=f"{name} does not hold in {broken} blocks: a defect of dbdyno",
        )


def _mean(values: Any) -> float:
    """Return the mean of the known values; NaN if there are none."""
    import numpy as np

    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _conditions(run: Run, measures: Measures, virtual: bool) -> Iterator[Caution]:
    import os

    blocks = measures.arms[0].blocks
    wall = sum(block.report.get("wall_ns", 0) for block in blocks)
    cpu = sum(block.report.get("cpu_ns", 0) for block in blocks)
    cores = os.cpu_count() or 1
    if not virtual and wall and cpu / wall > CLIENT_CPU_MAX * cores:
        yield _warning(
            "busy client",
            f"the load generator used {cpu / wall:.1f} of {cores} cores",
            "use fewer sessions, or run dbdyno on a different machine from the engine",
        )
    if (spent := client_cost.sentence(measures)) is not None:
        yield _warning("client CPU", spent, "it is part of every latency; where it differs, so do the clients")
    lost = sum(block.report["reconnects"] for block in blocks)
    if lost:
        yield _warning(
            "reconnects",
            f"{lost} connection(s) were lost and reopened",
            "check the engine's log; the blocks are marked",
        )
    first = [own["first_error"] for b in blocks for own in b.report["arms"] if own["first_error"]]
    number = sum(arm.total("failed") for arm in measures.arms)
    if number:
        said = f", the first: {first[0]}" if first else ""
        yield _warning(
            "errors",
            f"{number:,} transactions failed{said}",
            "failed transactions do not count in throughput or latency",
        )
    for facts in run.manifest.targets.values():
        for setting in facts.get("settings", []):
            if setting["name"] in RISKY and str(setting["value"]).lower() in UNSAFE_VALUES:
                yield _warning(
                    "not durable",
                    f"{setting['name']} = {str(setting['value']).lower()}: {RISKY[setting['name']]}",
                    "mention this wherever you show these numbers",
                )
        if facts.get("data_in_memory"):
            yield _warning(
                "memory file system",
                "the data are in memory: there is no disk to wait for",
                "set TMPDIR to a folder on a disk",
            )
    yield from logs.warnings(run)
    if len(blocks) < run.manifest.blocks_planned and not run.manifest.has("race"):
        yield _warning(
            "cut short",
            f"{len(blocks)} of {run.manifest.blocks_planned} blocks are complete",
            f"finish it: dbdyno run --resume {run.id}",
        )


def _warning(code: str, text: str, step: str) -> Caution:
    return {"code": code, "text": text, "next": step}
