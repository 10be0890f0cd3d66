"""What a comparison of periods reads on Oracle: V$SQLSTATS by plan, segments, statistics, time model, wait events.

Limits: the elapsed time of a PL/SQL block includes the time of its statements, so that time counts twice. Statement
times cover the whole instance or container, as the views show them.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from dbdyno.snapshot.causes.change import Change, Key, Pair, Rates, rates
from dbdyno.snapshot.engines.oracle.scripts import script
from dbdyno.snapshot.engines.oracle.scripts import script_names as scripts
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store.folder import Snapshot

SEGMENTS = "segment_statistics"
_GOOD = "verdict in ('ok', 'evicted')"
_SUMS = (
    ("calls", "executions", 1.0),
    ("ms", "elapsed_time", 1e3),
    ("work", "buffer_gets", 1.0),
    ("reads", "disk_reads", 1.0),
    ("writes", "direct_writes", 1.0),
    ("cpu", "cpu_time", 1e3),
    ("io", "user_io_wait", 1e3),
    ("lock", "application_wait", 1e3),
    ("concurrency", "concurrency_wait", 1e3),
    ("parses", "parse_calls", 1.0),
)
"""Values read for each statement: name, column and divisor."""
_TEXT = 1000


@dataclass(frozen=True)
class Event:
    """Rates per second of a wait event: waits and milliseconds of foreground sessions, and of all sessions."""

    waits: float = 0.0
    ms: float = 0.0
    all_waits: float = 0.0
    all_ms: float = 0.0

    @property
    def mean_ms(self) -> float:
        """Return the mean wait of foreground sessions in ms, or of all sessions if no foreground session waited."""
        if self.waits:
            return self.ms / self.waits
        return self.all_ms / self.all_waits if self.all_waits else 0.0


class OracleChange(Change):
    """Two periods of an Oracle instance.

    A statement's key is its SQL_ID; a segment's key is its container, owner, name and type.
    """

    view = "sql"
    times = (("elapsed_time", 1e-3),)
    calls = "executions"
    work = "logical reads"
    work_sql = "buffer_gets"
    sleep = re.compile(r"\bdbms_(?:lock|session)\s*\.\s*sleep\b", re.I)
    settings_view = ("parameter", "value")
    jumps = (
        ("system_event", "time_waited_micro_fg", "wait_class <> 'Idle'", "µs of waits"),
        ("sysstat", "value", "name = 'parse count (hard)'", "hard parses"),
        ("sysstat", "value", "name = 'logons cumulative'", "logons"),
    )

    @classmethod
    def was_started_between(cls, first: Snapshot, second: Snapshot) -> bool:
        """Return True if the instance was started between two snapshots; False if a start time is not known."""
        old, new = first.facts.get("started"), second.facts.get("started")
        return bool(old and new and old != new)

    def read_statements(self, interval: Interval, texts: dict[Key, str]) -> dict[Key, Rates]:
        """Return the rates by SQL_ID, summed over all plans, and add the texts to `texts`."""
        return self.read_sums(interval, "sql_id", _SUMS, f"{_GOOD} and elapsed_time > 0", texts)

    def read_tables(self, interval: Interval, names: dict[Hashable, str]) -> dict[Hashable, Rates]:
        """Return the rates of segment statistics by object, with partitions summed, and add the names to `names`."""
        if not interval.has(SEGMENTS):
            return {}
        counted = [c.name for c in interval.counters(SEGMENTS)]
        sums = ", ".join(f"sum({name}) as {name}" for name in counted)
        by = "con_id, owner, object_name, regexp_replace(object_type, ' .*', '') as kind"
        found: dict[Hashable, Rates] = {}
        for row in interval.query(f"select {by}, {sums} from {SEGMENTS} where verdict = 'ok' group by all", SEGMENTS):
            key = (row["con_id"], row["owner"], row["object_name"], row["kind"])
            names[key] = f"{row['owner']}.{row['object_name']}"
            found[key] = rates({name: row[name] for name in counted}, interval.seconds)
        return found

    def is_ours(self, text: str) -> bool:
        """Return True for a statement of the collector, recognized by its text because it carries no mark."""
        return _plain(text) in _ours()

    @cached_property
    def plans(self) -> dict[Key, tuple[Mapping[int, Rates], Mapping[int, Rates]]]:
        """Return the rates of each statement by plan (PLAN_HASH_VALUE), before and after."""
        found: dict[Key, tuple[dict[int, Rates], dict[int, Rates]]] = {}
        for side, one in enumerate((self.before, self.after)):
            if not one.has(self.view):
                continue
            rows = one.query(
                "select sql_id, plan_hash_value as plan, sum(executions) as calls, sum(elapsed_time) / 1e3 as ms,"
                f" sum(buffer_gets) as work from {self.view} where {_GOOD} and elapsed_time > 0 group by all",
                self.view,
            )
            for row in rows:
                both = found.setdefault(str(row.pop("sql_id")), ({}, {}))
                both[side][int(row.pop("plan"))] = rates(row, one.seconds)
        return dict(found)

    @cached_property
    def _statistics(self) -> tuple[Rates, Rates]:
        return self.rates_by_name(("sysstat", "name"), ("sys_time_model", "stat_name"))

    def statistic(self, name: str) -> tuple[float, float]:
        """Return a statistic, or a time-model value in µs, as a rate per second, before and after; 0 if not known."""
        return self._statistics[0].get(name, 0.0), self._statistics[1].get(name, 0.0)

    @cached_property
    def events(self) -> dict[str, tuple[Event, Event]]:
        """Return the wait events by name, before and after, without idle ones."""
        sides: list[dict[str, Event]] = []
        for one in (self.before, self.after):
            rows = (
                one.query(
                    "select event, total_waits_fg, time_waited_micro_fg / 1e3, total_waits, time_waited_micro / 1e3"
                    " from system_event where verdict = 'ok' and wait_class <> 'Idle'",
                    "system_event",
                )
                if one.has("system_event")
                else []
            )
            values = [list(row.values()) for row in rows]
            sides.append({row[0]: Event(*(float(value or 0) / one.seconds for value in row[1:])) for row in values})
        names = sides[0].keys() | sides[1].keys()
        return {name: (sides[0].get(name, Event()), sides[1].get(name, Event())) for name in sorted(names)}

    def event(self, name: str) -> tuple[Event, Event]:
        """Return one wait event by name, before and after; zeros if it is not known."""
        return self.events.get(name, (Event(), Event()))

    def waiting_statements(self, what: str) -> frozenset[Key]:
        """Return the slower statements with at least half of their added time in one kind of wait, `lock` or `io`."""
        return frozenset(
            number
            for number, one in self.statements.items()
            if one.is_slower() and one.growth(what) >= 0.5 * one.growth("ms") > 0
        )

    def hottest_segment(self, counter: str) -> Pair | None:
        """Return the segment for which a counter grew most, or None if it grew for no segment."""
        most = max(self.tables.values(), key=lambda one: one.growth(counter), default=None)
        return most if most is not None and most.growth(counter) > 0 else None


def _plain(text: str) -> str:
    """Return a text without white space, in lower case, cut to the length that the views show."""
    return re.sub(r"\s+", "", text[:_TEXT]).lower()


@cache
def _ours() -> frozenset[str]:
    from dbdyno.snapshot.engines.oracle.collector import without_literals

    return frozenset(_plain(without_literals(script(name).sql.strip()[:_TEXT])) for name in scripts())
