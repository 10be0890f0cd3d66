"""Verdict on cells with the flash log off and on, with the race of the two copies, the outliers and the gates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dbdyno.study.analysis.cells.turns import METRICS, SKIPPED, Turn, compare_turns
from dbdyno.study.analysis.checks.gates import rows, withheld_arms_of_model, withhold_verdict
from dbdyno.study.analysis.contract.parts import BlockRatios, RaceRow
from dbdyno.study.analysis.contract.rows import Caution, Model, VerdictRow
from dbdyno.study.analysis.measured.race import COUNTERS, share_over_blocks

if TYPE_CHECKING:
    from dbdyno.evidence.run import Block, Run
    from dbdyno.stats.comparison import BlockComparison
    from dbdyno.stats.gates import Gate

WRITES_LEAST = 1000
"""Smallest number of redo writes in a turn for a meaningful mean."""
OTHERS_MOST = 0.05
"""Largest share of redo writes that may race although the flash log is off."""
_HEADLINE = "redo_write"


def add(model: Model, run: Run, turns: list[list[Turn]], blocks: list[Block]) -> None:
    """Add metrics, verdict, race, gates and warnings to the model."""
    judge = run.manifest.plan["judge"]
    comparisons = compare_turns(turns, judge)
    model["race"] = list(_race(turns, judge["level"]))
    model["verdict"] = _verdict(model, run, comparisons)
    model["verdict"]["sentences"] += [*_race_sentences(model, run), *_outliers(model, turns, judge["level"])]
    model["figures"]["blocks"] = list(_by_block(turns, blocks, comparisons))
    found = list(_gates(model, run, turns, blocks))
    without = withheld_arms_of_model(model["arms"], found, judge)
    withhold_verdict({**model, "kind": "cells"}, without)
    model["gates"] = rows(found, judge)
    model["warnings"] = _conditions(run, blocks)


def _verdict(model: Model, run: Run, comparisons: list[BlockComparison]) -> VerdictRow:
    from dbdyno.stats.decide import decide
    from dbdyno.study.analysis.analyse import metric_row

    names = [arm["name"] for arm in run.manifest.arms]
    if not any(c.metric == _HEADLINE for c in comparisons):
        seen = sum(own["ops"] for own in model["arms"])
        return {
            "decision": "unclear",
            "headline": "The cells saw no redo write in any turn: was the database idle?"
            if not seen and model["race"] == []
            else "These cells do not count FL_RQ_TM_W and FL_RQ_W, so they cannot show how long a redo write takes "
            "without the flash log.",
            "sentences": [],
        }
    verdict = decide({names[1]: comparisons}, baseline=names[0], headline=_HEADLINE)
    rows = verdict.arms[0].comparisons
    model["metrics"] = [metric_row(c, arm=1, base=0) for c in rows]
    if model["kind"] == "aa":
        return _noise(rows)
    said = [sentence for sentence in verdict.sentences if sentence != verdict.headline]
    if verdict.decision == "unclear":
        said.append("Longer turns even out bursts in the load: --set turn=10min, or longer.")
    return {"decision": verdict.decision, "headline": verdict.headline, "sentences": said}


def _noise(rows: tuple[BlockComparison, ...]) -> VerdictRow:
    """Return the verdict for two arms with the same plan: the smallest differences that these blocks could show."""
    from dbdyno.stats.wording import percent

    main = next(c for c in rows if c.metric == _HEADLINE)
    seen = (
        ""
        if math.isnan(main.smallest_visible)
        else (
            f"These {main.blocks} blocks can detect a difference of {percent(main.smallest_visible)} % or "
            f"more in {main.label} (80 % power)."
        )
    )
    return {
        "decision": "noise floor",
        "headline": seen or "Too few blocks for a noise floor.",
        "sentences": [f"{c.label}: {c.words}." for c in rows],
    }


def _race(turns: list[list[Turn]], level: float) -> Iterator[RaceRow]:
    """Yield a row for each arm with a race: which copy was first, flash's share over blocks, reasons for bypasses."""
    for at, own in enumerate(turns):
        totals = {key: sum(_zero(t.difference(name)) for t in own) for key, name in COUNTERS.items()}
        shares = [
            t.difference("FL_FLASH_FIRST") / races
            for t in own
            if (races := _zero(t.difference("FL_DISK_FIRST")) + _zero(t.difference("FL_FLASH_FIRST")))
        ]
        passed: dict[str, int] = {}
        for turn in own:
            for name in turn.sums:
                if name.startswith(SKIPPED) and not name.endswith("_MIN") and turn.difference(name):
                    reason = name.removeprefix(SKIPPED)
                    passed[reason] = passed.get(reason, 0) + round(turn.difference(name))
        if not shares and not passed:
            continue
        share, low, high = share_over_blocks(shares, level) if shares else (math.nan,) * 3
        yield {
            "arm": at,
            "disk_first": round(totals["disk_first"]),
            "flash_first": round(totals["flash_first"]),
            "prevented": round(totals["prevented"]),
            "outliers": round(totals["outliers"]),
            "flash_outliers": round(totals["flash_outliers"]),
            "races": round(totals["disk_first"] + totals["flash_first"]),
            "share": share,
            "low": low,
            "high": high,
            "blocks": len(shares),
            "level": level,
            "passed": passed,
            "served_ns": _mean_ns(own, "FL_IO_TM_W", "FL_IO_W"),
            "request_ns": _mean_ns(own, "FL_RQ_TM_W", "FL_RQ_W"),
        }


def _zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _mean_ns(turns: list[Turn], time: str, requests: str) -> float:
    """Return the time per request over all turns [ns]; NaN if it is not counted."""
    count = math.fsum(_zero(turn.difference(requests)) for turn in turns)
    known = [turn.difference(time) for turn in turns if not math.isnan(turn.difference(time))]
    return math.fsum(known) * 1000 / count if known and count else math.nan


def _race_sentences(model: Model, run: Run) -> Iterator[str]:
    from dbdyno.stats.wording import duration

    for row in model["race"]:
        name = run.manifest.arms[row["arm"]]["name"]
        if row["races"]:
            yield (
                f"{name}: flash was first in {row['flash_first']:,} of {row['races']:,} redo "
                f"writes, {100 * row['share']:.2f} %{_ends(row)}; disk in {row['disk_first']:,}."
            )
        if not math.isnan(row["served_ns"]):
            yield f"{name}: a redo write that raced took {duration(row['served_ns'])} on average."
        if row["passed"]:
            reasons = ", ".join(f"{why} {n:,}" for why, n in row["passed"].items())
            yield f"{name}: writes that bypassed the flash log: {reasons}."


def _ends(row: RaceRow) -> str:
    """Return the interval of flash's share in parentheses; empty if there is none."""
    if math.isnan(row["low"]):
        return ""
    low, high = (f"{100 * end:.2f}" for end in (row["low"], row["high"]))
    return f" ({100 * row['level']:g} % {low} to {high} over {row['blocks']} blocks)"


def _outliers(model: Model, turns: list[list[Turn]], level: float) -> Iterator[str]:
    """Yield sentences on slow redo writes by arm: those that flash prevented, and the remaining ones per million."""
    for row in model["race"]:
        slow = row["prevented"] + row["outliers"]
        if row["races"] and slow:
            name = model["arms"][row["arm"]]["name"]
            yield (
                f"{name}: {row['prevented']:,} of {slow:,} outliers of the disk were prevented by "
                f"flash ({100 * row['prevented'] / slow:.1f} %)."
            )
    rates = [[_slow_on_both(turn) for turn in own] for own in turns]
    if not all(math.isfinite(rate) for own in rates for rate in own):
        return
    means = [sum(own) / len(own) for own in rates]
    words = " and ".join(f"{mean:.3g} with {arm['name']}" for mean, arm in zip(means, model["arms"], strict=True))
    text = f"Outliers that a session had to wait for, per million redo writes: {words}"
    differences = [b - a for a, b in zip(*rates, strict=True)]
    if len(differences) > 1 and any(differences):
        low, high = _interval(differences, level)
        text += f"; difference {means[1] - means[0]:+.3g} ({100 * level:g} % {low:.3g} to {high:.3g})"
    yield f"{text}."


def _slow_on_both(turn: Turn) -> float:
    """Return, per million redo writes, the outliers that were slow on both copies or bypassed the flash log."""
    slow = turn.difference("FL_ACTUAL_OUTLIERS") + turn.difference("FL_SKIP_OUTLIERS")
    writes = turn.difference("FL_RQ_W")
    return slow * 1e6 / writes if writes > 0 else math.nan


def _interval(values: list[float], level: float) -> tuple[float, float]:
    """Return Student's interval of the mean of per-block differences; the differences may be zero."""
    from dbdyno.stats.means import mean_interval

    return mean_interval(values, level)[1:]


def _by_block(
    turns: list[list[Turn]], blocks: list[Block], comparisons: list[BlockComparison]
) -> Iterator[BlockRatios]:
    """Yield the ratio of the second arm to the first by block, for the figure."""
    for name in (c.metric for c in comparisons):
        points = []
        for block, base, other in zip(blocks, *turns, strict=True):
            ratio = other.values()[name] / (base.values()[name] or math.nan)
            if math.isfinite(ratio) and ratio > 0:
                points.append((block, ratio))
        yield {
            "arm": 1,
            "metric": name,
            "block": [block.index for block, _ in points],
            "at_s": [(block.started_ns - blocks[0].started_ns) / 1e9 for block, _ in points],
            "ratio": [ratio for _, ratio in points],
            "marked": [", ".join(block.marks) for block, _ in points],
        }


def _gates(model: Model, run: Run, turns: list[list[Turn]], blocks: list[Block]) -> Iterator[Gate]:
    import numpy as np

    from dbdyno.stats import gates, gates_in_time

    yield gates.enough_blocks(len(blocks), run.manifest.plan["judge"]["level"])
    yield gates.blocks_missing(len(blocks), run.measured_blocks() - len(blocks))
    yield _work(turns)
    if model["kind"] != "aa":
        yield from _switch_gates(run, turns)
    yield _identity(turns)
    values = {m.name: [[t.values()[m.name] for t in own] for own in turns] for m in METRICS}
    at_s = [(block.started_ns - blocks[0].started_ns) / 1e9 for block in blocks]
    yield gates_in_time.drift("redo writes per second", values["redo_rate"][0], at_s)
    base, other = (np.asarray(own) for own in values[_HEADLINE])
    with np.errstate(divide="ignore", invalid="ignore"):
        yield gates_in_time.independent_blocks(np.log(other) - np.log(base))


def _work(turns: list[list[Turn]]) -> Gate:
    from dbdyno.stats.gates import Gate

    counts = [_zero(turn.difference("FL_RQ_W")) or _zero(turn.difference("FL_IO_W")) for own in turns for turn in own]
    least = min(counts)
    return Gate(
        "redo writes enough",
        least >= WRITES_LEAST,
        f"{least:,.0f} in the smallest turn",
        "keep the database busy during the whole run; lengthen the turns: --set turn=10min",
        code="writes",
    )


def _switch_gates(run: Run, turns: list[list[Turn]]) -> Iterator[Gate]:
    """Yield gates that check whether the share of racing writes changed when the plan was switched."""
    from dbdyno.stats.gates import Gate

    shares = {}
    for on, own in zip(run.manifest.iorm["on"], turns, strict=True):
        raced = sum(_zero(turn.difference("FL_IO_W")) for turn in own)
        every = sum(_zero(turn.difference("FL_RQ_W")) for turn in own)
        shares[on] = raced / every if every else math.nan
    if any(math.isnan(share) for share in shares.values()):
        yield Gate("the plan took effect", None, "the cells do not count FL_RQ_W", code="switched")
        return
    text = f"{100 * shares[True]:.3g} % of redo writes raced with the flash log on, {100 * shares[False]:.3g} % "
    yield Gate(
        "the plan took effect",
        shares[True] > shares[False],
        f"{text}with it off",
        "check that the objective enforces the plan and that the database has the name that the cells use",
        code="switched",
        because=f"the plan did not take effect: {text}with it off",
    )
    yield Gate(
        "redo of these databases only",
        shares[False] <= OTHERS_MOST,
        f"{100 * shares[False]:.3g} % of redo writes raced although the flash log was off",
        "other databases also write redo on these cells, and the same counters include it: name them too",
        code="others",
    )


def _identity(turns: list[list[Turn]]) -> Gate:
    """Check whether FL_DISK_FIRST + FL_FLASH_FIRST equals FL_IO_W in every turn."""
    from dbdyno.stats.gates import Gate

    broken = known = 0
    for turn in (turn for own in turns for turn in own):
        writes = turn.difference("FL_IO_W")
        if not math.isnan(writes):
            known += 1
            broken += turn.difference("FL_DISK_FIRST") + turn.difference("FL_FLASH_FIRST") != writes
    return Gate(
        "disk first + flash first = redo writes served",
        not broken if known else None,
        f"exact in {known - broken} of {known} turns",
        "a cell's counters come from several moments: treat the shares with caution",
        code="counters",
    )


def _conditions(run: Run, blocks: list[Block]) -> list[Caution]:
    """Return warnings about the conditions of the run, each with its next step."""
    found = []
    marks: dict[str, int] = {}
    for block in (block for block in run.blocks() if block.kind == "measure"):
        for mark in block.marks:
            marks[mark] = marks.get(mark, 0) + 1
    for mark, times in marks.items():
        found.append(_warning("cell left out", f"{mark} (in {times} block(s))", "the other cells count"))
    if len(run.blocks()) < run.manifest.blocks_planned:
        text = f"{len(run.blocks())} of {run.manifest.blocks_planned} blocks are complete"
        found.append(_warning("cut short", text, "start the run again for more"))
    return found


def _warning(code: str, text: str, step: str) -> Caution:
    return {"code": code, "text": text, "next": step}
