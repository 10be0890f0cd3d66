"""The alerts of the cells in a recording: asked for now and then, each kept once.

A cell's history may be months long: what began more than a day before the recording is left out.
Alerts are told again at every question, so that a round keeps only those that are new or that have
changed. A cell that does not answer to this is none the worse for it: its metrics stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dbdyno.cells.documents import read_any
from dbdyno.cells.hosts import Host
from dbdyno.cells.ssh import Fleet

COMMAND = "cellcli -e list alerthistory detail"
EVERY_S = 600.0
BEFORE_NS = 24 * 3600 * 10**9
KEPT = (
    "name",
    "severity",
    "beginTime",
    "endTime",
    "alertType",
    "alertMessage",
    "alertAction",
    "metricObjectName",
    "metricValue",
)
Alert = dict[str, str]


@dataclass
class Watch:
    """Remembers which alerts were told before."""

    known: dict[str, set[tuple[tuple[str, str], ...]]] = field(default_factory=dict)

    async def ask(self, fleet: Fleet, since_ns: int, hosts: Sequence[Host]) -> dict[str, list[Alert]]:
        """By cell, the alerts since a day before `since_ns` that were not told before. Asked are
        those of `hosts`, which have just answered: one that hangs would cost its time-out again."""
        found = {}
        for answer in await fleet.run(COMMAND, only=hosts):
            if answer.problem is not None:
                continue
            new = self._new(answer.host.name, read_any(answer.output).details, since_ns)
            if new:
                found[answer.host.name] = new
        return found

    def take(self, cell: str, details: Sequence[dict[str, str]]) -> list[Alert]:
        """The alerts among what a cell printed, whenever they began, that were not told before."""
        return self._new(cell, [entry for entry in details if is_alert(entry)], None)

    def _new(self, cell: str, details: Sequence[dict[str, str]], since_ns: int | None) -> list[Alert]:
        known = self.known.setdefault(cell, set())
        found = []
        for entry in details:
            alert = {name: entry[name].strip('" ') for name in KEPT if entry.get(name)}
            began_ns = moment_ns(alert.get("beginTime", ""))
            if not alert.get("name"):
                continue
            if since_ns is not None and (began_ns or since_ns) < since_ns - BEFORE_NS:
                continue
            key = tuple(sorted(alert.items()))
            if key not in known:
                known.add(key)
                found.append(alert)
        return found


def is_alert(details: Mapping[str, str]) -> bool:
    """Whether what a cell printed is an alert."""
    return "severity" in details and ("beginTime" in details or "alertMessage" in details)


def moment_ns(text: str) -> int | None:
    """A time as cells print it, since 1970; None where it is none."""
    with contextlib.suppress(ValueError):
        return round(datetime.fromisoformat(text.strip()).timestamp()) * 10**9
    return None


def recorded_alerts(run: Any) -> Iterator[tuple[str, Alert]]:
    """(cell, alert) of a recording as last told, in the order in which they were heard of."""
    last: dict[tuple[str, str], Alert] = {}
    for block in run.blocks():
        for cell, listed in block.report.get("alerts", {}).items():
            for alert in listed:
                last[cell, alert.get("name", "")] = alert
    for (cell, _), alert in last.items():
        yield cell, alert
