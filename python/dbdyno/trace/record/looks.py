"""Sentences on what a recording with `--mode read` misses, because it sees a server's memory only at instants."""

from __future__ import annotations

from dbdyno.base.json_types import JsonObject

_SHOWN = 4
"""Maximum number of events for which the seen and the estimated number of waits are mentioned."""
_SHORT = 1.02
"""Ratio of the estimated to the seen number of waits above which an event is mentioned."""


def look_warnings(report: JsonObject) -> list[str]:
    """Return the warnings about a recording made by looking at the server's memory at instants."""
    found = [_resolution(report)]
    if missed := _missed_events(report):
        found.append(missed)
    if report.get("gaps"):
        found.append(
            f"There were no looks in {_count(report['gaps'], 'gap')}, {report['gap_ns'] / 1e9:.3f} s in all, the"
            f" longest {report['longest_ns'] / 1e6:.1f} ms: other programs had the processor. What changed in the gaps"
            " is 'unobserved' (table looks)."
        )
    if report.get("renewed"):
        times = _count(report["renewed"], "time")
        found.append(f"The server restarted {times} after a crash; sessions ended there.")
    textless = report.get("textless") or {}
    if textless.get("statements"):
        found.append(
            f"The texts of {_count(textless['statements'], 'statement')} ({_count(textless['calls'], 'call')}) are not"
            " known, only the query ids: each call ended before a look."
        )
    return found


def _resolution(report: JsonObject) -> str:
    period = report["period_ns"]
    asked = f" (asked for: {period / 1e3:,.0f})" if period else ""
    rate = f"one look every {report['mean_ns'] / 1e3:,.1f} us{asked}"
    way = ""
    if not report.get("is_mapped"):
        way = f" by copying its memory (mapping it needs CAP_CHECKPOINT_RESTORE: {report['unmapped']})"
    cores = report["looks_cpu_ns"] / max(report["elapsed_ns"], 1)
    return (
        f"The server was read, not stopped: {rate}{way}, {cores:.1%} of a core. A wait's length is known to p2 of it;"
        " the total time is unbiased, the number of waits is a lower bound. Time outside of waits counts as CPU, also"
        " if the session waited for a processor. Rows and SQLSTATEs are missing, and several short calls of one"
        " statement may count as one."
    )


def _missed_events(report: JsonObject) -> str:
    """Return which events had more waits than were seen, by the estimate (docs/explanation/method.md)."""
    events = [one for one in report.get("events", []) if (one["estimate"] or one["seen"]) > _SHORT * one["seen"]]
    told = [f"{one['event']} {one['seen']:,} of about {one['estimate']:,}" for one in events[:_SHOWN]]
    return f"Waits shorter than the time between two looks are seen only by chance: {'; '.join(told)}." if told else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
