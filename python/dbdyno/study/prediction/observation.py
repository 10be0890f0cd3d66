"""Measurements of one arm of a live run: statement times, waits, CPU of server and client, log volume.

Only the blocks of one arm that count are read, without warm-up and settling. Sampled waits are rejected, because each
of them has the length of the sampling interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.study.plan.plan import Arm, Plan, plan_from_dict
from dbdyno.study.prediction.file_io import FileIo, Size, file_io, no_file_io, without_file_waits
from dbdyno.study.prediction.scripts import Steps, steps_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

    Floats = NDArray[np.float64]

HOW_TO_TIME = (
    'run it again with waits = "read" (or "exact") under [watch] of the plan; both need the server on this machine, and'
    " `dbdyno doctor` says which of them this user may use"
)
_VERSION = "version_num"
"""Name of a fact that only PostgreSQL targets have."""
POSTGRES, MARIADB = "postgresql", "mariadb"
_CALLS = """
select c.session, c.kind, c.statement, c.started_ns, c.elapsed_ns, coalesce(c.redo_bytes, -1) as redo_bytes
from calls c join slices s on c.block = s.block and c.slice = s.slice
where s.counts and c.arm = $1 and c.error is null order by c.session, c.started_ns
"""
_WAITS = """
select block, session, event_type || ':' || event as event, class, started_ns, elapsed_ns, fidelity from waits
where arm = $1 and object = 'client backend' and block in (select block from slices where counts)
order by started_ns
"""
_IN_WAITS = """
select block, sum(value) from metrics where metric = 'cpu_in_waits' and object = $1
and block in (select block from slices where counts) group by block
"""
_IN_WAIT = """
select substr(object, length($1) + 2), block, sum(value) from metrics
where metric = 'cpu_in_wait' and arm = $1 and starts_with(object, $1 || '/')
and block in (select block from slices where counts) group by all
"""
_SIZES = """
select split_part(object, ' of ', 1), coalesce(max(value) filter (metric = 'n_live_tup'), 0),
  max(value) filter (metric = 'size_bytes') as size_bytes, max(value) filter (metric = 'idx_scan') as scans
from metrics where source = $1 group by 1 having size_bytes > 0 order by scans desc nulls last, 1
"""
_WAL = """
select arm, sum(value) from (
  select arm, block, object, max(value) - min(value) as value from metrics
  where source = $1 and metric = $2 and block in (select block from slices where counts)
  group by all having count(*) > 1) group by arm
"""
_WAL_COUNTERS = {POSTGRES: ["wal", "insert_bytes"], MARIADB: ["global status", "innodb_lsn_current"]}
"""Source and name of the counter of log bytes, by engine."""
_HOST = """
with spans as (
  select arm, block, metric, max(value) - min(value) as ns, (max(at_ns) - min(at_ns)) as wall_ns from metrics
  where source = '/proc/stat' and metric like 'cpu\\_%' escape '\\'
    and block in (select block from slices where counts)
  group by all having count(*) > 1
)
select block, sum(ns) filter (metric not in ('cpu_idle', 'cpu_iowait', 'cpu_nice')),
  sum(wall_ns) / count(distinct metric)
from spans group by block order by block
"""
SYNC, WRITE, LOG_LOCK = "IO:WALSync", "IO:WALWrite", "LWLock:WALWrite"
"""Wait events of a commit: sync of the log, write of the log, and the lock held by another session meanwhile."""


@dataclass(frozen=True)
class Observation:
    """Measurements of one arm of a run.

    Attributes:
        engine: `postgresql` or `mariadb`.
        run: The run.
        plan: The plan that the run executed.
        arm: The arm.
        number: Index of the arm.
        steps: Scripts of the arm as steps.
        measures: Values of the arm by block.
        sessions: Number of sessions of the arm.
        calls: Columns of the arm's calls, in order of session and time.
        waits: Columns of the waits of its server processes, in order of time.
        reports: The load generator's report on the arm for each block that counts.
        cpu_in_waits_ns: CPU time inside waits, by block [ns]; empty if waits were only read from the server's memory.
        wal_bytes: Log that a transaction writes [bytes]; NaN if it is not known.
        client_ns: CPU time of the client per round trip, by block [ns].
        others: Cores that other programs used, by block; empty if it is not known.
        io: Waits for files within the calls; the times in `calls` do not include them.
        cpu_in_wait_ns: CPU time inside the waits for an event, by event and block [ns]; empty if it is not known.
        tables: Size of tables by `schema/name`, the most read ones first.
        indexes: Size of indexes by `schema/table/name`, the most scanned ones first.
    """

    engine: str
    run: Run
    plan: Plan
    arm: Arm
    number: int
    steps: Steps
    measures: ArmMeasures
    sessions: int
    calls: JsonObject
    waits: JsonObject
    reports: list[JsonObject]
    cpu_in_waits_ns: dict[int, float]
    wal_bytes: float
    client_ns: list[float]
    others: list[float]
    io: FileIo = field(default_factory=no_file_io)
    cpu_in_wait_ns: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    tables: Mapping[str, Size] = field(default_factory=dict)
    indexes: Mapping[str, Size] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """Return the known settings of the arm's server: those that are not the default, and the changes of the arm."""
        about = self.run.manifest.arms[self.number]
        target: JsonObject = self.run.manifest.targets.get(str(about["target"])) or {}
        known = {str(row["name"]): str(row["value"]) for row in target.get("settings", [])}
        return {**known, **{name: str(value) for name, value in about["changes"].items()}}

    @property
    def data_volume(self) -> JsonObject | None:
        """Return the modelled device below the server's data files, if it was mounted with direct I/O."""
        own = self._volume("data")
        return own if own and own["direct_io"] else None

    @property
    def log_volume(self) -> JsonObject | None:
        """Return the modelled device below the server's log, if the run had mounted one."""
        return self._volume("log")

    def _volume(self, part: str) -> JsonObject | None:
        """Return the record of the arm's volume that carries a part of its server's files."""
        target = self.run.manifest.arms[self.number]["target"]
        own = [one for one in self.run.manifest.volumes if one["target"] == target]
        return next((one for one in own if part in str(one["carries"]).split()), None)

    @property
    def fidelity(self) -> str:
        """Return how the arm's waits were observed, such as `exact` or `read`; empty if it has none."""
        return str(self.waits["fidelity"][0]) if len(self.waits["fidelity"]) else ""

    def elapsed_us(self, statement: str, kind: str) -> Floats:
        """Return the client's times of a statement [us]; if `kind` is `transaction`, the times of all transactions."""
        calls = self.calls
        own = calls["kind"] == kind
        if kind != "transaction":
            own &= calls["statement"] == statement
        found: Floats = calls["elapsed_ns"][own] / 1e3
        return found

    def waits_for(self, event: str) -> JsonObject:
        """Return the columns of the waits for an event."""
        own = self.waits["event"] == event
        return {name: values[own] for name, values in self.waits.items()}


def engine_of(run: Run) -> str:
    """Return the engine on which a run timed operations, according to its targets' facts.

    Returns:
        `postgresql` or `mariadb`; empty for any other run, which the machine does not model.
    """
    known = run.manifest
    if not (known.has("plan") and known.has("targets")) or known.reads["virtual"]:
        return ""
    facts = [facts for facts in known.targets.values() if isinstance(facts, dict)]
    if any(_VERSION in own for own in facts):
        return POSTGRES
    return MARIADB if any(str(own.get("version", "")).startswith("MariaDB") for own in facts) else ""


def observe(run: Run, measures: Measures, name: str) -> Observation:
    """Return the measurements of an arm.

    Raises:
        ModelError: There is no such arm, it was not a closed loop, or its server's processes were not observed.
    """
    from dbdyno.evidence.query import connect

    plan = plan_from_dict(run.manifest.plan)
    names = [arm.name for arm in plan.arms]
    if name not in names:
        raise ModelError(f"has no arm {name!r}", where=run.id, next_step=f"name one of the arms {', '.join(names)}")
    number = names.index(name)
    arm = plan.arms[number]
    if plan.rate_of(arm) is not None:
        raise ModelError(
            "the model cannot predict an arm with a rate, because the model's sessions never wait between transactions",
            where=name,
            next_step="choose arms without rate_per_s",
        )
    own = measures.arms[number]
    engine = engine_of(run)
    connection, _ = connect(run)
    try:
        calls = connection.execute(_CALLS, [name]).fetchnumpy()
        tables = {row[0] for row in connection.execute("show tables").fetchall()}
        # The performance schema is sampled, and tells nothing of a log's flush.
        timed = "waits" in tables and engine != MARIADB
        waits = connection.execute(_WAITS, [name]).fetchnumpy() if timed else _no_waits()
        inside = connection.execute(_IN_WAITS, [name]).fetchall() if "metrics" in tables else []
        counter = _WAL_COUNTERS.get(engine, _WAL_COUNTERS[POSTGRES])
        wal = dict(connection.execute(_WAL, counter).fetchall()) if "metrics" in tables else {}
        host = connection.execute(_HOST).fetchall() if "metrics" in tables else []
        events = connection.execute(_IN_WAIT, [name]).fetchall() if "metrics" in tables else []
        views = ("pg_stat_user_tables", "pg_stat_user_indexes")
        sizes = [_sizes(connection.execute(_SIZES, [view]).fetchall() if "metrics" in tables else []) for view in views]
    finally:
        connection.close()
    reports = [one for block in own.blocks for one in block.report["arms"] if one["arm"] == number]
    steps = steps_of(plan, arm)
    calls, waits = _plain(calls), _plain(waits)
    io = file_io(calls, waits)
    return Observation(
        engine,
        run,
        plan,
        arm,
        number,
        steps,
        own,
        own.sessions,
        without_file_waits(calls, io),
        waits,
        reports,
        {int(block): float(value) for block, value in inside},
        _wal_bytes(wal, name, measures, plan),
        _client_ns(own, measures, plan),
        _others(host, measures),
        io,
        _by_event(events),
        *sizes,
    )


def timed_waits(observation: Observation) -> Observation:
    """Return the measurements if they can be used for a fit: waits must not be sampled, except on MariaDB.

    Raises:
        ModelError: The waits were sampled, there are no waits, or the CPU of the server's processes is unknown.
    """
    if observation.engine != MARIADB and observation.fidelity not in ("exact", "read"):
        sampled = (
            "were sampled: each is as long as the time between two samples" if observation.fidelity else "are missing"
        )
        raise ModelError(
            f"the waits of {observation.arm.name} {sampled}", where=observation.run.id, next_step=HOW_TO_TIME
        )
    if not observation.reports or not all("on_cpu_ns" in report for report in observation.reports):
        raise ModelError(
            "the CPU time of the server's processes is unknown",
            where=observation.run.id,
            next_step="run dbdyno on the server's host, without a pooler, and leave `counters` of [watch] on",
        )
    return observation


def _no_waits() -> JsonObject:
    import numpy as np

    names = ("block", "session", "event", "class", "started_ns", "elapsed_ns", "fidelity")
    return {name: np.array([], dtype=object if name in ("event", "class", "fidelity") else np.int64) for name in names}


def _plain(columns: JsonObject) -> JsonObject:
    """Return all columns as plain arrays, text columns with type object, for any types that the database returned."""
    import numpy as np

    return {
        name: np.asarray(values)
        if getattr(values, "dtype", None) is not None and values.dtype.kind in "iuf"
        else np.asarray(list(values), dtype=object)
        for name, values in columns.items()
    }


def _by_event(rows: list[tuple[str, int, float]]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for event, block, ns in rows:
        found.setdefault(event, {})[int(block)] = float(ns)
    return found


def _sizes(rows: list[tuple[str, float, float, float | None]]) -> dict[str, Size]:
    return {name: Size(float(count), float(size)) for name, count, size, _ in rows}


def _wal_bytes(wal: dict[str, float], name: str, measures: Measures, plan: Plan) -> float:
    """Return an arm's log volume per transaction [bytes]; if arms alternate in slices, the mean of all writing arms."""
    if name in wal:
        done = sum(r["transactions"] for b in measures.arms[0].blocks for r in b.report["arms"] if _is(r, plan, name))
        return wal[name] / done if done else math.nan
    if "" not in wal:
        return math.nan
    writers = {at for at, arm in enumerate(plan.arms) if steps_of(plan, arm).writes}
    done = sum(r["transactions"] for b in measures.arms[0].blocks for r in b.report["arms"] if r["arm"] in writers)
    return wal[""] / done if done else math.nan


def _is(report: JsonObject, plan: Plan, name: str) -> bool:
    return bool(plan.arms[report["arm"]].name == name)


def _others(host: list[tuple[int, float, float]], measures: Measures) -> list[float]:
    """Return the cores used by other programs, by block: the host's use minus that of the load and its servers.

    Programs of low priority are left out, because they yield to a process that wakes up.

    If no core was idle, other programs may have needed more cores than they got. Their demand is unknown: a load
    average also counts processes that wait for a disk, and control groups share cores by group.
    """
    reports = {block.index: block.report for block in measures.arms[0].blocks}
    found = []
    for block, busy_ns, wall_ns in host:
        report = reports.get(int(block))
        if report is None or not wall_ns or not all("on_cpu_ns" in own for own in report["arms"]):
            continue
        own_ns = report.get("cpu_ns", 0) + sum(own["on_cpu_ns"] for own in report["arms"])
        found.append(max(busy_ns - own_ns, 0.0) / wall_ns)
    return found


def _client_ns(arm: ArmMeasures, measures: Measures, plan: Plan) -> list[float]:
    """Return the client's CPU time per round trip, by block [ns].

    In runs of older versions, which did not measure it by arm, it is the average over all arms.
    """
    trips = [steps_of(plan, arm).round_trips for arm in plan.arms]
    found = []
    for block in measures.arms[0].blocks:
        own = [report for report in block.report["arms"] if report["arm"] == arm.number]
        if own and all(report.get("load_cpu_ns") for report in own):
            spent, reports = sum(report["load_cpu_ns"] for report in own), own
        else:
            spent, reports = block.report.get("cpu_ns", 0), block.report["arms"]
        sent = sum(report["transactions"] * trips[report["arm"]] for report in reports)
        if sent and spent:
            found.append(spent / sent)
    return found
