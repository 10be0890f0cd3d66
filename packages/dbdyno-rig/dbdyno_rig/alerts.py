"""Thresholds of a modelled cell, and the alerts that they raise.

    create threshold CD_IO_TM_W_SM_RQ comparison='>', warning=1000, critical=10000, occurrences=2

A threshold belongs to a metric, or to one object of that metric (METRIC.OBJECT). At every collection the mean of the
last `observation` values is compared with the limits. When `occurrences` consecutive means are over a limit, an alert
begins; it ends at the first mean that is not over the limit. An alert is a sequence: each change of severity is a
separate entry (1_1 warning, 1_2 critical, 1_3 clear). Nothing else in the model raises alerts: its disks and cells do
not fail.
"""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from dbdyno_rig.rack import KEPT_MINUTES, Row, Sample

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
KEPT_ALERTS = 1_000
_LEVELS = ("normal", "warning", "critical")


@dataclass(frozen=True)
class Threshold:
    """Limits of a metric; a limit that is None is not set."""

    name: str
    comparison: str
    warning: float | None = None
    critical: float | None = None
    occurrences: int = 1
    observation: int = 1

    def covers(self, row: Row) -> bool:
        """Return True if the threshold applies to this row's metric and object."""
        metric, _, item = self.name.lower().partition(".")
        return row[2].lower() == metric and item in ("", row[1].lower())

    def level(self, value: float) -> int:
        """Return the severity of a value: 0 normal, 1 warning, 2 critical."""
        over = COMPARISONS[self.comparison]
        if self.critical is not None and over(value, self.critical):
            return 2
        return int(self.warning is not None and over(value, self.warning))


@dataclass(frozen=True)
class Alert:
    """One entry of an alert: a change of severity; `end_ns` is None while this severity lasts."""

    sequence: int
    step: int
    severity: str
    threshold: Threshold
    row: Row
    begin_ns: int
    first_ns: int
    end_ns: int | None = None
    examined_by: str = ""

    @property
    def name(self) -> str:
        """Return the entry's name: its sequence number and its step in the sequence, such as `1_2`."""
        return f"{self.sequence}_{self.step}"


@dataclass
class _Watch:
    """State of a threshold for one object: the object's last values and severities, and its open alert."""

    values: deque[float]
    levels: deque[int]
    open: Alert | None = None


@dataclass
class Alerts:
    """The thresholds of a cell and its alerts; safe to use from several threads."""

    history: deque[Alert] = field(default_factory=lambda: deque(maxlen=KEPT_ALERTS))
    _thresholds: dict[str, Threshold] = field(default_factory=dict)
    _watches: dict[tuple[str, str, str], _Watch] = field(default_factory=dict)
    _states: deque[tuple[int, dict[tuple[str, str], str]]] = field(default_factory=lambda: deque(maxlen=KEPT_MINUTES))
    _sequence: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def thresholds(self) -> list[Threshold]:
        """Return all thresholds, sorted by name."""
        with self._lock:
            return [one for _, one in sorted(self._thresholds.items())]

    def set_threshold(self, threshold: Threshold) -> None:
        """Create a threshold, or replace the existing one and start counting its occurrences again."""
        with self._lock:
            self.drop_thresholds([threshold.name])
            self._thresholds[threshold.name.lower()] = threshold

    def drop_thresholds(self, names: Iterable[str]) -> None:
        """Drop thresholds and end their alerts."""
        gone = {name.lower() for name in names}
        with self._lock:
            for name in gone:
                self._thresholds.pop(name, None)
            for key in [key for key in self._watches if key[0] in gone]:
                alert = self._watches.pop(key).open
                if alert is not None:
                    self._end(alert, alert.row, self._states[-1][0], "clear")

    def entries(self) -> list[Alert]:
        """Return the alerts' entries, sorted by time."""
        with self._lock:
            return list(self.history)

    def delete_ended(self) -> None:
        """Delete the alerts that have ended."""
        with self._lock:
            lasting = {w.open.sequence for w in self._watches.values() if w.open is not None}
            kept = [alert for alert in self.history if alert.sequence in lasting]
            self.history = deque(kept, maxlen=KEPT_ALERTS)

    def mark_examined(self, names: Iterable[str], by: str) -> None:
        """Record who has examined these alerts."""
        wanted = set(names)
        with self._lock:
            self._rewrite(lambda one: replace(one, examined_by=by) if one.name in wanted else one)

    def state(self, row: Row, at_ns: int) -> str:
        """Return the severity of the metric and object in `row` in the collection at time `at_ns`."""
        with self._lock:
            found = [states for at, states in self._states if at == at_ns]
        return found[0].get((row[2], row[1]), _LEVELS[0]) if found else _LEVELS[0]

    def check_sample(self, sample: Sample) -> None:
        """Compare a cell's new collection with the thresholds."""
        with self._lock:
            self._states.append((sample.at_ns, {}))
            for key, threshold in self._thresholds.items():
                for row in sample.rows:
                    if threshold.covers(row):
                        self._compare(key, threshold, row, sample.at_ns)

    def _compare(self, key: str, threshold: Threshold, row: Row, at_ns: int) -> None:
        watch = self._watches.get((key, row[2], row[1]))
        if watch is None:
            watch = _Watch(deque(maxlen=threshold.observation), deque(maxlen=threshold.occurrences))
            self._watches[key, row[2], row[1]] = watch
        watch.values.append(row[3])
        if len(watch.values) < threshold.observation:
            return
        watch.levels.append(threshold.level(sum(watch.values) / len(watch.values)))
        long_enough = len(watch.levels) == threshold.occurrences
        level = min(watch.levels) if long_enough or watch.open else 0
        severity = _LEVELS[level]
        before = watch.open.severity if watch.open else _LEVELS[0]
        if severity != before:
            watch.open = self._change_alert(threshold, watch.open, row, at_ns, severity)
        if level:
            self._states[-1][1][row[2], row[1]] = severity

    def _change_alert(
        self, threshold: Threshold, open_: Alert | None, row: Row, at_ns: int, severity: str
    ) -> Alert | None:
        if open_ is not None:
            after = "clear" if severity == _LEVELS[0] else severity
            return self._end(open_, row, at_ns, after)
        self._sequence += 1
        alert = Alert(self._sequence, 1, severity, threshold, row, at_ns, at_ns)
        self.history.append(alert)
        return alert

    def _end(self, alert: Alert, row: Row, at_ns: int, severity: str) -> Alert | None:
        """End an entry, append the next entry of its sequence and return that entry, or None if the alert is over."""
        self._rewrite(lambda one: replace(one, end_ns=at_ns) if one.name == alert.name else one)
        over = severity == "clear"
        following = replace(
            alert,
            step=alert.step + 1,
            severity=severity,
            row=row,
            begin_ns=at_ns,
            end_ns=at_ns if over else None,
            examined_by="",
        )
        self.history.append(following)
        return None if over else following

    def _rewrite(self, change: Callable[[Alert], Alert]) -> None:
        self.history = deque((change(one) for one in self.history), maxlen=KEPT_ALERTS)
