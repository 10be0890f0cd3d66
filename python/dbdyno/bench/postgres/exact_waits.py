"""Waits of the load's sessions: all timed (`waits = "exact"`), or read from server memory (`waits = "read"`).

Instead of sampling pg_stat_activity, the kernel records where a backend begins and ends a wait (`crates/dyno-record`).
The probes are in place from the first stretch to the end of the run, so that all arms bear the same cost; the server
must run on this machine. If dbdyno may not set probes, watchpoints time the waits at ten times the cost. With `read` no
backend is ever stopped: its memory is read as often as 2 % of the machine's CPU time allow. A wait shorter than the
time between two readings is then found only by chance, so the number of waits is a lower bound; their total time is
unbiased.

The reported time of a wait does not include the cost of its probe. The CPU time that a session used inside its waits
(nearly always a read from the file system's cache) is reported as a separate metric: it is also part of the CPU time of
the session's process and must be counted once.

Limits: if arms alternate in slices and a session is opened in the middle of a block, its arm is unknown. While a client
leaves a transaction open between two statements, no wait is recorded: that time belongs to the client.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno import _core
from dbdyno.base.errors import TargetError
from dbdyno.base.scratch import ScratchFolder
from dbdyno.bench.metrics import Metric
from dbdyno.bench.poll import columns_of_waits

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

AUTO, SAMPLED, EXACT, READ = "auto", "sampled", "exact", "read"
RECORDED = frozenset({EXACT, READ})
"""Values of `waits` under [watch] for which the waits of a server on this machine are recorded, not sampled."""
PROBES, WATCHPOINTS, LOOKS = "probes", "watchpoints", "looks"
"""Sources of the metrics that belong to the waits."""
_SOURCES = {"sites": PROBES, "watch": WATCHPOINTS, "read": LOOKS}
CPU_IN_WAITS = "cpu_in_waits"
CPU_IN_WAIT = "cpu_in_wait"
"""Names of two metrics: CPU time inside all waits of an arm, and inside those of one event (`ARM/TYPE:EVENT`)."""
_SHARE = 0.02
"""Largest share of the machine's CPU time that looks may use, even if a processor is idle."""
COST = "cost"
NOTES = "notes"
CLIENT = "client backend"
_SEEN = frozenset({CLIENT, "walwriter", "checkpointer", "background writer", "io worker"})
_WHO = "select pg_backend_pid(), pid, application_name from pg_stat_activity where backend_type = 'client backend'"
_ROWS = """
select session, started_ns, coalesce(p2, elapsed_ns), event, least(coalesce(p1, 0), coalesce(p2, elapsed_ns))
from read_parquet(?) where not think order by started_ns
"""
_READ = """
select session, started_ns, elapsed_ns, event, 0
from read_parquet(?) where not think and event <> 'unobserved' order by started_ns
"""


@dataclass
class Stretch:
    """The assignment of sessions to arms during a stretch of load.

    Attributes:
        arm: The arm that runs alone, or None if arms alternate.
        block: Number of the block.
        arms: Arm of each session, by process ID.
        others: Process IDs of sessions that do not belong to the load.
    """

    arm: str | None
    block: int
    arms: Mapping[int, str]
    others: frozenset[int]

    def arm_of(self, pid: int, kind: str) -> str | None:
        """Return the arm of a process ('' if unknown), or None if its waits do not belong to the load."""
        if kind != CLIENT:
            return self.arm or ""
        return None if pid in self.others else self.arms.get(pid, self.arm or "")


class ExactWatcher:
    """Recorder of a server's waits for the duration of a run, with the interface of a sampler (`Watcher`).

    Args:
        connect: Returns a connection to the server; the caller owns it.
        names: The application_name of each arm's sessions.
        fidelity: `EXACT`, or `READ` for looks at the server's memory.
    """

    def __init__(self, connect: Callable[[], Connection], names: Mapping[str, str], fidelity: str = EXACT) -> None:
        self._connect = connect
        self._fidelity = fidelity
        self._arm_of = {name: arm for arm, name in names.items()}
        self._recorder: Any = None
        self._source = PROBES
        self._folder: ScratchFolder | None = None
        self._postmaster = 0
        self._stretch: Stretch | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._metrics: list[tuple[str, int, Metric]] = []
        self._paid = (0, 0)

    def start(self) -> None:
        """Do nothing: probes are set when the first stretch begins, as the server may be restarted before it."""

    def pause(self) -> None:
        """Pause reading the server's memory; probes stay in place."""
        if self._recorder is not None:
            self._recorder.pause(True)

    def resume(self) -> None:
        """Resume reading the server's memory; probes have stayed in place."""
        if self._recorder is not None:
            self._recorder.pause(False)

    def stop(self) -> None:
        """Remove the probes."""
        recorder, self._recorder = self._recorder, None
        try:
            if recorder is not None:
                recorder.finish()
        finally:
            if self._folder is not None:
                self._folder.remove()

    def mark(self, arm: str | None, block: int) -> None:
        """Assign all later waits to this arm and block; earlier waits remain assigned to their own stretch.

        Raises:
            TargetError: The server is not on this machine, or is behind a pooler.
            TraceError: The server cannot be probed.
        """
        self._cut()
        rows = self._connect().execute(_WHO).fetchall()
        own = int(rows[0][0]) if rows else 0
        self._probe(own)
        arms = {int(pid): self._arm_of[name] for _, pid, name in rows if name in self._arm_of}
        others = frozenset(int(pid) for _, pid, name in rows if name not in self._arm_of)
        self._cut()
        self._stretch = Stretch(arm, block, arms, others)

    def take(self) -> dict[str, list[Any]]:
        """Return all waits since the last call, as columns."""
        self._cut()
        self._stretch = None
        rows, self._rows = self._rows, []
        return columns_of_waits(rows)

    def take_metrics(self) -> list[tuple[str, int, Metric]]:
        """Return the cost of the probes and the CPU time inside waits since the last call, as (arm, block, metric)."""
        metrics, self._metrics = self._metrics, []
        return metrics

    def _probe(self, pid: int) -> None:
        """Set the probes, or set them again if the server was restarted."""
        postmaster = _parent(pid)
        if postmaster == self._postmaster:
            return
        if self._recorder is not None:
            self._recorder.finish()
        self._folder = self._folder or ScratchFolder("waits")
        out = self._folder.path / str(postmaster)
        out.mkdir(exist_ok=True)
        request: dict[str, object] = {"pid": postmaster, "out": str(out)}
        # All arms bear the cost of probes alike, so it is not limited; reading memory must not disturb the server.
        reads = self._fidelity == READ
        request |= {"mode": READ, "cost_limit": _SHARE} if reads else {"mode": EXACT, "cost_limit": 0.0}
        self._recorder = _core.Recorder(json.dumps(request))
        self._source = _SOURCES[self._recorder.mode()[0]]
        self._postmaster, self._paid = postmaster, (0, 0)

    def _cut(self) -> None:
        """Fetch what has been recorded so far; keep it if an arm and block are assigned, otherwise discard it."""
        if self._recorder is None:
            return
        sessions = {number: (pid, kind) for number, pid, kind in json.loads(self._recorder.cut()) or []}
        paid = self._price()
        is_over = self._recorder.is_over()
        if is_over:
            self._recorder.finish()  # raises the error that ended the recording
        folder = self._folder.path / str(self._postmaster) if self._folder else None
        parts = sorted(str(part) for part in folder.glob("waits/*.parquet")) if folder else []
        if self._stretch is not None:
            self._keep(self._stretch, sessions, parts)
            self._note(self._stretch, "", COST, paid[0] - self._paid[0], "ns")
            self._note(self._stretch, "", NOTES, paid[1] - self._paid[1], "count")
        self._paid = paid
        for part in [*parts, *(map(str, folder.glob("calls/*.parquet")) if folder else [])]:
            Path(part).unlink()
        if is_over:  # the server was restarted: the next stretch finds it again
            self._recorder, self._postmaster = None, 0

    def _price(self) -> tuple[int, int]:
        told = json.loads(self._recorder.progress()) or {}
        return int(told.get("probes_ns", 0)), int(told.get("notes", 0))

    def _keep(self, stretch: Stretch, sessions: Mapping[int, tuple[int, str]], parts: list[str]) -> None:
        from dbdyno.evidence.memory import file_connection

        if not parts:
            return
        with contextlib.closing(file_connection()) as connection:
            found = connection.execute(_READ if self._source == LOOKS else _ROWS, [parts]).fetchall()
        fidelity = READ if self._source == LOOKS else EXACT
        inside: dict[str, dict[str, int]] = {}
        for session, started_ns, elapsed_ns, named, cpu_ns in found:
            pid, kind = sessions.get(session, (0, ""))
            arm = stretch.arm_of(pid, kind) if kind in _SEEN else None
            if arm is None:
                continue
            event_type, _, event = named.rpartition(":")
            row = (arm, stretch.block, pid, started_ns, elapsed_ns, event, event_type, kind, fidelity)
            self._rows.append(row)
            if kind == CLIENT and fidelity == EXACT:
                own = inside.setdefault(arm, {})
                own[named] = own.get(named, 0) + cpu_ns
        for arm, by_event in inside.items():
            self._note(stretch, arm, CPU_IN_WAITS, sum(by_event.values()), "ns")
            for named, cpu_ns in by_event.items():
                made = Metric(
                    self._source, "wait", f"{arm}/{named}", CPU_IN_WAIT, time.time_ns(), cpu_ns, "ns", "gauge"
                )
                self._metrics.append((arm, stretch.block, made))

    def _note(self, stretch: Stretch, arm: str, metric: str, value: int, unit: str) -> None:
        made = Metric(self._source, "arm", arm, metric, time.time_ns(), value, unit, "gauge")
        self._metrics.append((arm or stretch.arm or "", stretch.block, made))


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError, IndexError) as error:
        raise TargetError(
            "waits can be read or timed only on the server's machine, but the server runs elsewhere",
            next_step="run dbdyno on the server's machine, or leave out waits under [watch]",
        ) from error
