"""Reader of pgbench's output: its summary, and the lines of `--progress`, which are the intervals."""

from __future__ import annotations

import math
import re

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.contents import NS, Contents, Interval, Setting, Sums, known_values

VERSION = re.compile(r"^pgbench \((.{1,100})\)\r?$", re.MULTILINE)
KIND = re.compile(r"^transaction type: (.{1,200}?)\r?$", re.MULTILINE)
_NUMBER = r"(\d{1,12}(?:\.\d{1,9})?|-?nan|NaN)"
TPS = re.compile(rf"^tps = {_NUMBER} \((?:without initial|excluding|including)", re.MULTILINE)
TPS_ALONE = re.compile(rf"^tps = {_NUMBER} \((?:without initial|excluding)", re.MULTILINE)
PROGRESS = re.compile(
    rf"^progress: {_NUMBER} s, {_NUMBER} tps, lat {_NUMBER} ms stddev {_NUMBER}(?:, lag {_NUMBER} ms)?"
    r"(?:, (\d{1,12}) failed)?",
    re.MULTILINE,
)
DONE = re.compile(r"^number of transactions actually processed: (\d{1,15})", re.MULTILINE)
FAILED = re.compile(r"^number of failed transactions: (\d{1,15})", re.MULTILINE)
MEAN = re.compile(rf"^latency average = {_NUMBER} ms", re.MULTILINE)
SD = re.compile(rf"^latency stddev = {_NUMBER} ms", re.MULTILINE)
DURATION = re.compile(r"^duration: (\d{1,9}) s", re.MULTILINE)
SETTINGS = {
    "scale": re.compile(r"^scaling factor: (\d{1,9})", re.MULTILINE),
    "mode": re.compile(r"^query mode: (\w{1,20})", re.MULTILINE),
    "clients": re.compile(r"^number of clients: (\d{1,9})", re.MULTILINE),
    "threads": re.compile(r"^number of threads: (\d{1,9})", re.MULTILINE),
}
EPOCH_S = 10**9
"""Progress times from this value on are UNIX times (--progress-timestamp); smaller ones count from the start [s]."""
ENGLISH = "run pgbench with LC_ALL=C, and keep all that it prints"


def matches(head: str) -> bool:
    """Return True if the text has a summary or a line of progress."""
    return bool(KIND.search(head) or PROGRESS.search(head) or (VERSION.search(head)))


def read(text: str, where: str) -> Contents:
    """Return the intervals of --progress, or else the sums of the whole run.

    Raises:
        EvidenceError: There is neither a summary nor a line of progress, or the text contains several runs.
    """
    if len(KIND.findall(text)) > 1:
        raise EvidenceError(
            "contains several runs of pgbench", where=where, next_step="write each run into its own file"
        )
    kind = KIND.search(text)
    name = kind[1].removeprefix("<builtin: ").removesuffix(">") if kind else ""
    settings = {own: _setting(found[1]) for own, one in SETTINGS.items() if (found := one.search(text))}
    totals, intervals = _totals(text), _intervals(text)
    if not totals and not intervals:
        raise EvidenceError("has neither a result nor a line of progress", where=where, next_step=ENGLISH)
    duration = DURATION.search(text)
    if not intervals:
        intervals = [Interval(0, _length_ns(totals, duration), totals)]
    clients = settings.get("clients", 1)
    sessions = max(1, min(clients if isinstance(clients, int) else 1, 65535))
    version = VERSION.search(text)
    return Contents(
        "pgbench",
        version[1] if version else "",
        name,
        settings,
        sums=[Sums(name or "pgbench", intervals, sessions)],
        totals=totals,
        ended_ns=intervals[-1].ended_ns if intervals[-1].ended_ns > EPOCH_S * NS["s"] else None,
    )


def _setting(text: str) -> Setting:
    return int(text) if text.isdigit() else text


def _totals(text: str) -> dict[str, float]:
    """Return the sums of the whole run, without connection times if these are reported separately."""
    tps = TPS_ALONE.search(text) or TPS.search(text)
    if tps is None:
        return {}
    done, failed, mean, sd = (pattern.search(text) for pattern in (DONE, FAILED, MEAN, SD))
    return known_values(
        throughput=float(tps[1]),
        transactions=float(done[1]) if done else None,
        failed=float(failed[1]) if failed else None,
        mean=float(mean[1]) * NS["ms"] if mean else None,
        sd=float(sd[1]) * NS["ms"] if sd else None,
    )


def _length_ns(totals: dict[str, float], duration: re.Match[str] | None) -> int:
    if duration:
        return int(duration[1]) * NS["s"]
    rate = totals.get("throughput", 0.0)
    return round(totals.get("transactions", 0.0) / rate * NS["s"]) if rate else 0


def _intervals(text: str) -> list[Interval]:
    """Return the intervals between progress lines; a line whose time does not increase is ignored."""
    found: list[Interval] = []
    before_ns = None
    for line in PROGRESS.finditer(text):
        at = float(line[1])
        at_ns = round(at * NS["s"])
        begun_ns = before_ns if before_ns is not None else 0 if at < EPOCH_S else at_ns - NS["s"]
        before_ns = at_ns
        if not at_ns > begun_ns:
            continue
        tps, mean, sd = (float(line[at]) for at in (2, 3, 4))
        values = known_values(
            throughput=tps,
            transactions=round(tps * (at_ns - begun_ns) / NS["s"]) if math.isfinite(tps) else None,
            failed=float(line[6]) if line[6] else None,
            mean=mean * NS["ms"] if tps > 0 else None,
            sd=sd * NS["ms"] if tps > 0 else None,
        )
        found.append(Interval(begun_ns, at_ns, values))
    return found
