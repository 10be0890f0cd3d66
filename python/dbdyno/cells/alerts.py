"""Alerts of the cells in a recording: queried from time to time, and each recorded only once.

A cell's history may cover months: alerts that began more than a day before the recording are left out. A cell repeats
its alerts at every query, so a round stores only new or changed alerts. If a cell does not answer this query, its
metrics are still recorded.
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
LOOKBACK_NS = 24 * 3600 * 10**9
ALERT_FIELDS = (
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
class AlertMemory:
    """Memory of the alerts that each cell has already reported."""

    known: dict[str, set[tuple[tuple[str, str], ...]]] = field(default_factory=dict)

    async def query_new(self, fleet: Fleet, since_ns: int, hosts: Sequence[Host]) -> dict[str, list[Alert]]:
        """Query alerts and return, by cell, the new ones that began after `since_ns` or at most a day before it.

        Only `hosts`, which have just answered, are queried, because a host that hangs would cost its timeout again.
        """
        found = {}
        for answer in await fleet.run(COMMAND, only=hosts):
            if answer.problem is not None:
                continue
            new = self._new(answer.host.name, read_any(answer.output).details, since_ns)
            if new:
                found[answer.host.name] = new
        return found

    def unreported(self, cell: str, details: Sequence[dict[str, str]]) -> list[Alert]:
        """Return the alerts in a cell's output that were not reported before, whenever they began."""
        return self._new(cell, [entry for entry in details if is_alert(entry)], None)

    def _new(self, cell: str, details: Sequence[dict[str, str]], since_ns: int | None) -> list[Alert]:
        known = self.known.setdefault(cell, set())
        found = []
        for entry in details:
            alert = {name: entry[name].strip('" ') for name in ALERT_FIELDS if entry.get(name)}
            began_ns = moment_ns(alert.get("beginTime", ""))
            if not alert.get("name"):
                continue
            if since_ns is not None and (began_ns or since_ns) < since_ns - LOOKBACK_NS:
                continue
            key = tuple(sorted(alert.items()))
            if key not in known:
                known.add(key)
                found.append(alert)
        return found


def is_alert(details: Mapping[str, str]) -> bool:
    """Return True if the object in a cell's output is an alert."""
    return "severity" in details and ("beginTime" in details or "alertMessage" in details)


def moment_ns(text: str) -> int | None:
    """Return a time that a cell printed, in ns since 1970, or None if it is not a time."""
    with contextlib.suppress(ValueError):
        return round(datetime.fromisoformat(text.strip()).timestamp()) * 10**9
    return None


def recorded_alerts(run: Any) -> Iterator[tuple[str, Alert]]:
    """Yield (cell, alert) of a recording, each alert in its last reported state, in order of first appearance."""
    last: dict[tuple[str, str], Alert] = {}
    for block in run.blocks():
        for cell, listed in block.report.get("alerts", {}).items():
            for alert in listed:
                last[cell, alert.get("name", "")] = alert
    for (cell, _), alert in last.items():
        yield cell, alert
