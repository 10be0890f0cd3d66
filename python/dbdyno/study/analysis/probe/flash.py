"""Analysis of a flash probe: the times of each phase, whether overwriting became steady, and its cost from then on."""

from __future__ import annotations

from typing import Any

from dbdyno.base import decisions
from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run, type_errors_as_evidence_errors
from dbdyno.study.analysis.contract.declarations import SCHEMA

FIRST, READ, OVERWRITE = "first write", "read", "overwrite"
BINS = 10
"""Number of stretches into which the figure of latency over time divides a phase."""
_PHASES = """
    select block, count(*), avg(elapsed_ns), quantile_disc(elapsed_ns, 0.5), quantile_disc(elapsed_ns, 0.99),
           max(elapsed_ns)
    from calls group by block order by block"""
_TIMES = """
    with edges as (select block, min(started_ns) as low, max(started_ns) + 1 as high from calls group by block)
    select block, min(started_ns), least($bins - 1, $bins * (started_ns - low) // (high - low)) as bin,
           quantile_disc(elapsed_ns, 0.5), quantile_disc(elapsed_ns, 0.99), max(elapsed_ns)
    from calls join edges using (block) group by block, bin order by 2"""
SHARE_LEAST = 0.5
"""Share of the file system that the file must fill to represent a full device."""
Model = JsonObject


def model_of(run: Run) -> tuple[Model, list[str]]:
    """Return the model, and the parts of evidence that could not be read.

    Raises:
        EvidenceError: No phase is complete.
    """
    from dbdyno.evidence.query import connect

    connection, broken = connect(run)
    with connection, type_errors_as_evidence_errors("flash probe", run.id):
        measured = {row[0]: row[1:] for row in connection.execute(_PHASES).fetchall()}
        times = connection.execute(_TIMES, {"bins": BINS}).fetchall()
        about = dict(run.manifest.flash)
        phases = _phases(run, measured)
        return _model(run, about, phases, _times(phases, times)), broken


def _phases(run: Run, measured: dict[int, tuple[Any, ...]]) -> list[Model]:
    found: list[Model] = []
    rounds, began = 0, None
    for block in run.blocks():
        if block.index not in measured:
            continue
        began = block.started_ns if began is None else began
        name = str(block.report["phase"])
        rounds += name == OVERWRITE
        requests, mean, p50, p99, most = measured[block.index]
        seconds = (block.ended_ns - block.started_ns) / 1e9
        size = int(block.report["request_bytes"])
        found.append(
            {
                "block": block.index,
                "phase": name,
                "round": rounds if name == OVERWRITE else None,
                "at_s": (block.started_ns - began) / 1e9,
                "seconds": seconds,
                "requests": requests,
                "request_bytes": size,
                "per_s": requests / seconds,
                "bytes_per_s": requests * size / seconds,
                "mean_ns": mean,
                "p50_ns": p50,
                "p99_ns": p99,
                "max_ns": most,
            }
        )
    if not found:
        raise EvidenceError(
            "does not contain a request",
            where=str(run.path),
            next_step="probe again for a longer time, such as --round 5s",
        )
    return found


def _times(phases: list[Model], rows: list[tuple[Any, ...]]) -> list[Model]:
    """Return latency over time, counted from the first request."""
    names = {phase["block"]: phase["phase"] for phase in phases}
    own = [row for row in rows if row[0] in names]
    zero = own[0][1] if own else 0
    return [
        {"at_s": (at - zero) / 1e9, "phase": names[block], "p50_ns": p50, "p99_ns": p99, "max_ns": most}
        for block, at, _, p50, p99, most in own
    ]


def _model(run: Run, about: Model, phases: list[Model], times: list[Model]) -> Model:
    from dbdyno.stats.steady_state import RANGE_MOST, SLOPE_MOST, WINDOW, steadiness, steady_after

    rounds = [phase for phase in phases if phase["phase"] == OVERWRITE]
    rates = [phase["per_s"] for phase in rounds]
    window, after = steadiness(rates), steady_after(rates)
    last = rounds[-WINDOW:]
    written = sum(phase["requests"] * phase["request_bytes"] for phase in rounds)
    figures: Model = {
        "after": after,
        "rounds": len(rounds),
        "range": window.range if window else None,
        "rise": window.rise if window else None,
        "range_most": RANGE_MOST,
        "rise_most": SLOPE_MOST,
        "window": WINDOW,
        "first_write_ns": next((p["mean_ns"] for p in phases if p["phase"] == FIRST), None),
        "overwrite_ns": sum(p["mean_ns"] * p["requests"] for p in last) / sum(p["requests"] for p in last)
        if last
        else None,
        "reads_ns": [phase["mean_ns"] for phase in phases if phase["phase"] == READ],
        "written_times": written / about["span_bytes"],
    }
    return {
        "schema": SCHEMA,
        "kind": "flash",
        "run": {
            "id": run.id,
            "title": str(run.manifest.title or ""),
            "status": run.status,
            "started_at": str(run.manifest.started_at or ""),
            "seed": run.manifest.seed,
            "tool_version": run.manifest.tool_version,
        },
        "verdict": _verdict(figures, phases),
        "flash": about,
        "host": dict(run.manifest.target["host"]),
        "steady": figures,
        "phases": phases,
        "times": times,
        "warnings": _warnings(run, about, figures),
    }


def _verdict(figures: Model, phases: list[Model]) -> Model:
    from dbdyno.stats.wording import duration, percent

    rounds, first, then = figures["rounds"], figures["first_write_ns"], figures["overwrite_ns"]
    if then is None:
        return {
            "decision": decisions.NO_VERDICT,
            "headline": "The probe ended before the first round of overwriting.",
            "sentences": ["Give it more time (--for) or a smaller file (--file-size)."],
        }
    ratio = f", {then / first:.3g} times" if first else ""
    before = f"first write {duration(first)}, " if first else ""
    words = f"{before}overwrite {duration(then)}{ratio}"
    counted = f"{rounds} round{'s' * (rounds != 1)}"
    if figures["after"] is not None:
        decision, headline = "measured", f"Steady after {counted}: {words}."
    else:
        decision, headline = decisions.UNCLEAR, f"Not steady after {counted}: {words} in the last rounds."
    sentences = []
    if figures["range"] is not None:
        way = "rise" if figures["rise"] > 0 else "fall"
        sentences.append(
            f"The last {figures['window']} rounds' requests per second lie within {percent(figures['range'])} % of"
            f" their mean ({percent(figures['range_most'])} % at most), and {way} by {percent(figures['rise'])} %"
            f" ({percent(figures['rise_most'])} % at most)."
        )
    elif figures["after"] is None:
        sentences.append(f"A steady state needs {figures['window']} rounds; there were fewer.")
    sentences.append(f"Overwriting wrote {figures['written_times']:.3g} times the size of the file or device.")
    if len(figures["reads_ns"]) == 2:
        early, late = figures["reads_ns"]
        sentences.append(f"A read took {duration(early)} before overwriting and {duration(late)} after it.")
    return {"decision": decision, "headline": headline, "sentences": sentences}


def _warnings(run: Run, about: Model, figures: Model) -> list[Model]:
    found = []
    if run.manifest.target["host"].get("data_in_memory"):
        found.append(("memory", "The file was in memory: these times are not a device's.", "name a path on a disk"))
    if figures["overwrite_ns"] is not None and figures["written_times"] < 1:
        text = (
            f"All rounds together wrote {figures['written_times']:.2g} times the size: a flash device may not have "
            "erased any block yet."
        )
        found.append(("written", text, "longer rounds: --round 60s"))
    share = about.get("share")
    if share is not None and share < SHARE_LEAST:
        text = f"The file is {share * 100:.2g} % of its file system: these figures do not show a full device."
        found.append(("share", text, "use a larger --file-size, or a separate device with --destroy"))
    if "direct" not in str(about.get("sync")):
        text = "Requests went through the page cache: reads came from memory, and writes may have been merged."
        found.append(("page cache", text, "--sync direct"))
    return [{"code": code, "text": text, "next": step} for code, text, step in found]
