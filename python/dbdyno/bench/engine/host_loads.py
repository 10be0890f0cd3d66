"""The load of a plan on many hosts, with the interface of `_core.Load`.

Every host has its share of each arm's sessions. All hosts run the same slices at the same instants; each receives them
converted to its own clock. A gap between two slices allows for the error of the clocks and for transactions that end
late. Operations that a host began before all hosts were in the slice are kept as evidence, but do not count.

A host that is lost ends the block. The next block begins once as many hosts are available as before.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import Error, TargetError
from dbdyno.bench.recorder import RepeatBlockError
from dbdyno.hosts import worker_load
from dbdyno.hosts.calls import HostPart, load_pyarrow, write_calls
from dbdyno.hosts.clock import ClockComparison, ClockFit, SteadyClock, compare_clock, fit_clock
from dbdyno.hosts.load_reports import HostReport, HostSlice, empty_report, merge_reports
from dbdyno.hosts.shared_folder import PlacedPart, SharedFolder
from dbdyno.hosts.shares import first_session, share_of

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadReport, LoadSpec
    from dbdyno.bench.clients.load import Slice
    from dbdyno.bench.engine.remaining_sessions import RemainingSessions
    from dbdyno.bench.recorder import Recorder
    from dbdyno.hosts.workers import Workers

LEAD_NS = 150_000_000
LEAD_OF_HOST_NS = 3_000_000
"""Time before the first slice, plus time per host, so that all hosts know their slices in time [ns]."""
GAP_NS = 5_000_000
"""Shortest gap between two slices."""
ERRORS_IN_GAP = 4
RENEW_S = 0.5
RETURN_S = 60.0
"""Time to wait for the return of a lost host [s]."""


class HostLostError(RepeatBlockError):
    """Error for a block in which a host was lost."""


@dataclass
class HostLoad:
    """The load generator of one host, and the comparisons of its clock in this block."""

    address: str
    name: str
    opened: worker_load.LoadClock
    compared: list[ClockComparison] = field(default_factory=list)
    late: int = 0


class HostLoads(Closeable):
    """Load of a plan on the workers of a scheduler."""

    def __init__(
        self, workers: Workers, spec: LoadSpec, remaining: RemainingSessions, shared_folder: str | None = None
    ) -> None:
        """Open the load on every worker; sessions are opened later.

        Args:
            workers: The workers.
            spec: The load of all workers together.
            remaining: The sessions that are ended if a host is lost.
            shared_folder: Folder visible to all hosts, for their evidence; None to transfer it through the scheduler.

        Raises:
            PlanError: There are more hosts than an arm has sessions.
            TargetError: A host cannot log in to the server or use the shared folder, or its clock does not answer.
        """
        load_pyarrow()
        self.workers, self.spec, self.count = workers, spec, len(workers.addresses)
        self.remaining = remaining
        self.clock, self.connected = SteadyClock(), set[int]()
        self.gap_ns, self.done, self.is_stopped, self.is_lost = GAP_NS, 0, False, False
        self.begins_ns: dict[int, int] = {}
        self.last: list[HostPart] = []
        self.cut_slices: set[tuple[str, int]] = set()
        self.held: list[HostLoad] = []
        self.place: tuple[Path, str] | None = None
        self.shared = SharedFolder(Path(shared_folder)) if shared_folder else None
        self._open()
        self._closing = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="hosts", daemon=True)
        self._renewing.start()

    def close(self) -> None:
        """Close all sessions of all hosts."""
        self._closing.set()
        self._renewing.join(5)
        self._drop()
        if self.shared is not None:
            self.shared.close()

    def connect(self, arm: int) -> None:
        """Open the sessions of an arm on every host."""
        self._open_sessions(arm)
        self.connected.add(arm)

    def disconnect(self, arm: int) -> None:
        """Close the sessions of an arm on every host."""
        self.connected.discard(arm)
        if not self.is_lost:
            self._call_all("disconnect", arm)
            self.remaining.forget(arm)

    def begin_block(self, folder: Path, name: str) -> None:
        """Open the block's evidence part on every host.

        Raises:
            TargetError: A host was lost and did not return.
        """
        if self.is_lost:
            self._reopen()
        self.begins_ns, self.place = {}, (folder, name)
        for held in self.held:
            held.compared, held.late = [], 0
        for arm, numbers in enumerate(zip(*self._call_all("begin_block", name), strict=True)):
            self.remaining.note(arm, list(itertools.chain(*numbers)))
        self._compare(rounds=16)

    def abandon_block(self) -> None:
        """Discard the open block; the hosts discard it when the next block begins."""
        self.place = None

    def end_block(self) -> int:
        """Fetch the parts of all hosts, write them as one part, and return its number of rows."""
        assert self.place is not None
        folder, name = self.place
        self._compare(rounds=16)
        contents = self._contents(self._call_all("end_block", name))
        arms = [(arm["name"], arm["sessions"]) for arm in self.spec["arms"]]
        self.last = [
            HostPart(
                held.name,
                content,
                self._fit(held),
                {arm: first_session(whole, self.count, at) for arm, whole in arms},
            )
            for at, (held, content) in enumerate(zip(self.held, contents, strict=True))
        ]
        rows, self.cut_slices = write_calls(self.last, self.begins_ns, folder / f"{name}.parquet")
        return rows

    def _contents(self, ended: Sequence[bytes | PlacedPart]) -> list[bytes]:
        """Return the content of the Parquet file that each host wrote for the block.

        Raises:
            HostLostError: A host's part does not appear in the shared folder.
        """
        try:
            return [one if isinstance(one, bytes) else self._read_shared(one) for one in ended]
        except TargetError as error:
            raise HostLostError(error.message, where=error.where, next_step=error.next_step) from error

    def _read_shared(self, placed: PlacedPart) -> bytes:
        assert self.shared is not None  # the host was told of it
        return self.shared.read(placed)

    def add_to(self, recorder: Recorder) -> None:
        """Add to a block's record what each host did, and the slices that do not count."""
        numbers = {arm["name"]: at for at, arm in enumerate(self.spec["arms"])}
        recorder.uncounted += sorted((numbers[arm], number) for arm, number in self.cut_slices)
        recorder.own["hosts"] = [
            {
                "host": held.name,
                "transactions": part.calls,
                "cut": part.cut,
                "late_slices": held.late,
                "mean_ns": {arm: round(mean) for arm, mean in part.mean_ns.items()},
                "clock_offset_ns": part.clock.offset_at(part.clock.host_ns),
                "clock_error_ns": part.clock.error_ns,
                "clock_drift_ppm": round(part.clock.drift * 1e6, 3),
                "comparisons": len(held.compared),
            }
            for held, part in zip(self.held, self.last, strict=True)
        ]

    def progress(self) -> int:
        """Return the number of transactions of all hosts so far."""
        return self.done

    def stop(self) -> None:
        """Ask all hosts to end soon; called from a signal handler."""
        self.is_stopped = True

    def run(self, block: int, slices: Sequence[Slice]) -> LoadReport:
        """Run slices on all hosts at the same instants and return one report.

        Raises:
            HostLostError: A host was lost, or did not start its slice in time.
        """
        self._compare(rounds=8)
        clocks = [self._fit(held) for held in self.held]
        gap_ns = max(self.gap_ns, ERRORS_IN_GAP * max(clock.error_ns for clock in clocks))
        planned = self._instants(slices, gap_ns)
        reports: list[HostReport | None] = self._call_each(
            "run_slices", lambda at: (block, [_move_slice(one, clocks[at]) for one in planned])
        )
        self._compare(rounds=8)
        whole = [report for report in reports if report is not None]
        if len(whole) < self.count:
            if self.is_stopped:
                if not whole:
                    return {**empty_report(self.clock.now_ns()), "interrupted": True}
                return merge_reports([report.report for report in whole], beside=True)
            behind = next(held.name for held, one in zip(self.held, reports, strict=True) if one is None)
            raise HostLostError(
                "did not start its slice in time", where=behind, next_step="check which processes keep this host busy"
            )
        self._learn(planned, whole)
        report = merge_reports([report.report for report in whole], beside=True)
        report["started_ns"] = planned[0].started_ns
        report["ended_ns"] = self.clock.now_ns()
        return report

    def _instants(self, slices: Sequence[Slice], gap_ns: int) -> list[HostSlice]:
        """Return the slices with start and end times on this machine's clock."""
        at_ns = self.clock.now_ns() + LEAD_NS + LEAD_OF_HOST_NS * self.count
        planned = []
        for arm, number, length_ns, _ in slices:
            assert length_ns is not None  # refused before
            planned.append(HostSlice(arm, number, at_ns, at_ns + length_ns))
            at_ns += length_ns + gap_ns
        return planned

    def _learn(self, planned: Sequence[HostSlice], reports: Sequence[HostReport]) -> None:
        """Record when each slice began on all hosts, and set the gap between slices to how late transactions end."""
        fits = [self._fit(held) for held in self.held]
        error_ns = max(clock.error_ns for clock in fits)
        began: dict[int, int] = {}
        ended: dict[int, int] = {}
        for held, clock, report in zip(self.held, fits, reports, strict=True):
            held.late += len(planned) - len(report.slices)
            for one in report.slices:
                began[one.slice] = max(began.get(one.slice, 0), one.started_ns - clock.offset_at(one.started_ns))
                ended[one.slice] = max(ended.get(one.slice, 0), one.ended_ns - clock.offset_at(one.ended_ns))
        before_ns, beyond = 0, []
        for one in planned:
            self.begins_ns[one.slice] = max(began.get(one.slice, 0), before_ns) + error_ns
            before_ns = ended.get(one.slice, before_ns)
            beyond.append(before_ns - one.ended_ns)
        longest = min(one.ended_ns - one.started_ns for one in planned) // 2
        usual = sorted(beyond)[len(beyond) * 9 // 10]
        self.gap_ns = max(GAP_NS, min(usual * 3 // 2, longest))

    def _open(self) -> None:
        token = secrets.token_hex(16)
        self.token = token
        shares = [share_of(self.spec, self.count, at) for at in range(self.count)]
        addresses = self.workers.addresses[: self.count]
        shared = None
        if self.shared is not None:
            self.shared.make()
            shared = (self.shared.path, self.shared.word)
        tasks = [
            self.workers.submit(worker_load.open_load, token, share, shared, on=address)
            for address, share in zip(addresses, shares, strict=True)
        ]
        opened = [task.result(self._check) for task in tasks]
        self.held = [
            HostLoad(address, self.workers.names[address], one) for address, one in zip(addresses, opened, strict=True)
        ]
        self._compare(rounds=16)

    def _reopen(self) -> None:
        """Reopen the load on the same number of hosts, with the sessions that were open.

        Raises:
            TargetError: A host did not return.
        """
        self._drop()
        deadline = time.monotonic() + RETURN_S
        while len(self.workers.refresh()) < self.count:
            if self.is_stopped or time.monotonic() > deadline:
                raise TargetError(
                    f"this run began on {self.count} hosts, but now only {len(self.workers.addresses)} can be reached",
                    where=self.workers.scheduler,
                    next_step="start the worker again, then continue with `dbdyno run --resume last`",
                )
            time.sleep(0.2)
        self.is_lost = False
        try:
            self._open()
            for arm in sorted(self.connected):
                self._open_sessions(arm)
        except TargetError as error:
            self.is_lost = True
            raise HostLostError(error.message, where=error.where, next_step=error.next_step) from error

    def _drop(self) -> None:
        """Close the load on all available workers, and end the sessions of a lost one."""
        self.held = []
        try:
            self.workers.refresh()
            self.workers.run_on_all(worker_load.close_load, self.token)
        except Error:
            self.is_lost = True  # their leases end
        if self.is_lost:
            self.remaining.end()

    def _open_sessions(self, arm: int) -> None:
        self.remaining.note(arm, list(itertools.chain(*self._call_all("connect", arm))))

    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._call_each(method, lambda _: arguments)

    def _call_each(self, method: str, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """Call a method of the load of every host at the same time, and return the answers.

        Raises:
            HostLostError: A host was lost.
            TargetError: A host's load raised this error; the host's name is added.
        """
        tasks: list[Any] = []
        name = ""
        try:
            for at, held in enumerate(self.held):
                name = held.name
                own = arguments(at)
                tasks.append(self.workers.submit(worker_load.call_load, self.token, method, *own, on=held.address))
            answers = []
            for held, task in zip(self.held, tasks, strict=True):
                name = held.name
                answers.append(task.result(self._look))
            return answers
        except TargetError as error:
            self.is_lost = True
            for task in tasks:
                task.cancel()
            raise HostLostError(
                f"host {name}: {error.message}", where=error.where, next_step=error.next_step
            ) from error

    def _look(self) -> None:
        """Pass on a stop request, and raise an error if a host with a pending task is lost."""
        if self.is_stopped and not self._closing.is_set():
            self.workers.run_on_all(worker_load.stop_load, self.token)
        self._check()

    def _check(self) -> None:
        if self.is_lost:
            raise HostLostError("a host was lost", where=self.workers.scheduler)

    def _renew(self) -> None:
        """Renew the leases, count transactions, and compare clocks while slices run."""
        renewed_s = time.monotonic()
        while not self._closing.wait(RENEW_S):
            if self.is_lost:
                renewed_s = time.monotonic()
                continue
            try:
                if not {held.address for held in self.held} <= set(self.workers.refresh()):
                    self.is_lost = True
                    continue
                self.done = sum(
                    max(0, done) for done in self.workers.run_on_all(worker_load.renew_load, self.token).values()
                )
                renewed_s = time.monotonic()
                self._compare(rounds=2)
            except Error:
                # A task on a lost host raises an error itself, except on a frozen host, whose lease ends in any case.
                self.is_lost = self.is_lost or time.monotonic() - renewed_s > worker_load.LEASE_S

    def _compare(self, rounds: int) -> None:
        """Compare the clock of every host with this machine's clock.

        Raises:
            HostLostError: A host does not answer.
        """
        for held in self.held:
            opened = held.opened
            try:
                held.compared.append(compare_clock(self.clock.now_ns, opened.address, opened.port, opened.key, rounds))
            except TargetError as error:
                raise HostLostError(f"host {held.name}: {error.message}", where=error.where) from error

    def _fit(self, load: HostLoad) -> ClockFit:
        found = fit_clock(load.compared)
        return ClockFit(found.host_ns, found.offset_ns, found.drift, found.error_ns + load.opened.error_ns)


def _move_slice(host_slice: HostSlice, clock: ClockFit) -> HostSlice:
    """Return a slice with its times converted to a host's clock."""
    offset = clock.offset_at(host_slice.started_ns + round(clock.offset_ns))
    return HostSlice(host_slice.arm, host_slice.slice, host_slice.started_ns + offset, host_slice.ended_ns + offset)
