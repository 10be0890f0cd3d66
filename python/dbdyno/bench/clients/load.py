"""The load of a plan with external clients, slice by slice, with the interface of `_core.Load`.

dbdyno's own load writes the evidence and runs the arms without a client. A client's operations are checked for
plausibility and added to the same part, with their times on the clock of all other evidence: a client uses
CLOCK_MONOTONIC, which all processes of a host share, and one offset to the epoch is used for the whole run.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from dbdyno.bench.clients import stream
from dbdyno.bench.clients.external_load import PartWriter
from dbdyno.bench.clients.failures import Failures, failures_of
from dbdyno.bench.clients.job import Job, encode_message
from dbdyno.bench.clients.messages import SliceMessage
from dbdyno.bench.clients.process import ANSWER_S, START_S, ClientError, ClientLostError, ClientProcess, StopRequested
from dbdyno.bench.clients.reader import RECORD, Records, SliceRequest, StreamError, refuse_impossible_records
from dbdyno.bench.clients.time_coverage import LEAST_AGAIN_NS, LEAST_NS, TimeCoverage, busy_ns
from dbdyno.bench.marked_processes import NAME, MarkUndo, new_mark
from dbdyno.hosts.load_reports import empty_report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbdyno.base.core_types import ArmReport, ClientArmReport, LineReport, LoadReport, LoadSpec
    from dbdyno.bench.clients.arrivals import Arrivals
    from dbdyno.bench.clients.network_line import ClientLine
    from dbdyno.bench.guardian import Guardian

Slice = tuple[int, int, int | None, int | None]
"""Slice as a tuple: number of the arm, number of the slice, length in ns or None, number of transactions or None."""
CONNECT_S = 60.0
CLOSE_S = 10.0
CALL_KINDS = {"exec": 1, "begin": 2, "commit": 3, "rollback": 4}
"""Index of each statement kind in the core's list of kinds; a transaction has index 0."""


class SliceResult(NamedTuple):
    """Result of one slice: its end, its operations, when each was due (-1: no due time), and how many were skipped."""

    end: stream.Record
    records: Records
    intended_ns: NDArray[np.int64]
    skipped: int


def _slice(number: int, length_ns: int | None, transactions: int | None, arrivals: Arrivals | None) -> SliceMessage:
    """Return the message that requests a slice."""
    asked: SliceMessage = {"do": "slice", "slice": number, "length_ns": length_ns, "transactions": transactions}
    if arrivals is None:
        return asked
    return {**asked, "due_ns": list(arrivals.due_ns), "give_up_ns": arrivals.give_up_ns}


class ClientArm:
    """An arm that a client runs: how the client is started, and its process while there is one.

    With a `guardian` the client also ends if this process is killed and the client ignores the end of its stdin.
    """

    def __init__(self, job: Job, command: Sequence[str], environment: Mapping[str, str], name: str) -> None:
        self.job, self.command, self.environment, self.name = job, command, environment, name
        self.secret: str | None = None
        self.line: ClientLine | None = None
        self.guardian: Guardian | None = None
        self.undo: int | None = None
        self.mark = new_mark()
        self.stopped = False
        self.process: ClientProcess | None = None
        self.open = self.drawn = False
        self.accounted, self.doubted = TimeCoverage(), False
        timeout_ms = job.arm.get("statement_timeout_ms") or 0
        self.start_s, self.connect_s = START_S, CONNECT_S
        self.answer_s = max(ANSWER_S, timeout_ms / 1000 + 10)

    def start(self) -> ClientProcess:
        """Return the client's process, starting it if necessary.

        Raises:
            ClientError: The client cannot be started, or does not follow the protocol.
        """
        if self.process is None:
            if self.guardian is not None and self.undo is None:
                self.undo = self.guardian.push(MarkUndo(f"client {self.name}", self.mark))
            through = self.line.open() if self.line is not None else {}
            self.process = ClientProcess(
                self.command,
                {**self.environment, **through, NAME: self.mark},
                self.name,
                secret=self.secret,
                stopped=lambda: self.stopped,
                start_s=self.start_s,
                answer_s=self.answer_s,
            )
            with self.kill_on_error():
                self.process.read_greeting()
        return self.process

    def connect(self) -> None:
        """Open the client's sessions if they are not open."""
        process = self.start()
        if self.open:
            return
        with self.kill_on_error():
            if self.line is not None:
                self.line.admit(process.process.pid)
            process.send(self.job.job_message())
            process.wait_for_record(stream.READY, self.connect_s)
            if self.line is not None and (why := self.line.bypass_problem(self.job.sessions)) is not None:
                raise process.error(
                    why, "make the client connect to the address in its environment, or leave network out"
                )
        self.open, self.drawn = True, False

    def disconnect(self) -> None:
        """Close the client's sessions; the process continues, but is ended if it does not close them."""
        if self.process is None or not self.open:
            return
        self.open = False
        with contextlib.suppress(ClientError, StopRequested), self.kill_on_error():
            self.process.send(encode_message({"do": "close"}))
            self.process.wait_for_record(stream.CLOSED, CLOSE_S)
        if self.line is not None:
            self.line.admit(None)

    def begin_block(self) -> None:
        """Request new drawn transactions, and reset times that are only valid within a block."""
        self.drawn = False
        if not self.accounted.can_continue:
            self.accounted = TimeCoverage()

    def draw(self) -> None:
        """Send new transactions before a slice, so that sending is not part of the slice."""
        if not self.drawn:
            with self.kill_on_error():
                self.start().send(self.job.draw_message())
            self.drawn = True

    def turn(self, number: int, length_ns: int | None, transactions: int | None) -> SliceResult:
        """Run one slice."""
        process, job = self.start(), self.job
        count = None if job.arm.get("rate_per_s") else transactions
        asked = SliceRequest(number, job.sessions, len(job.drawer.statements()), len(job.drawer.scripts()), count)
        with self.kill_on_error():
            process.refuse_unrequested_output()
        asked.sent_ns = time.monotonic_ns()
        arrivals = job.arrivals(number, length_ns, transactions)
        patience_ns = arrivals.give_up_ns - asked.sent_ns if arrivals else length_ns or 0
        with self.kill_on_error():
            process.send(encode_message(_slice(number, length_ns, transactions, arrivals)))
            end, parts = process.wait_for_record(stream.END, patience_ns / 1e9 + self.answer_s)
            asked.heard_ns = time.monotonic_ns()
            records = np.concatenate(parts) if parts else np.empty(0, RECORD)
            if end.slice != number:
                raise process.error(f"ended slice {end.slice}, but slice {number} was requested")
            try:
                refuse_impossible_records(records, end, asked)
                intended = arrivals.intended(records) if arrivals else np.full(len(records), -1, np.int64)
            except StreamError as error:
                raise process.error(f"reports impossible operations: {error.message}") from error
        if arrivals is None:
            self.accounted.add(records, end, asked, length_ns)
        return SliceResult(end, records, intended, len(arrivals.due_ns) - end.rows if arrivals else 0)

    def check_time_coverage(self) -> None:
        """Raise `ClientLostError` if the client's operations account for too little of its sessions' time.

        Times too short to judge are added to later ones: a block may be run in pieces, and blocks may be short.
        """
        least_ns = LEAST_AGAIN_NS if self.doubted else LEAST_NS
        doubt = self.accounted.problem(least_ns)
        if self.accounted.share(least_ns) is not None:
            self.accounted, self.doubted = TimeCoverage(), doubt is not None
        if doubt is not None and self.process is not None:
            with self.kill_on_error():
                raise self.process.error(doubt, kind=ClientLostError)

    @contextlib.contextmanager
    def kill_on_error(self) -> Any:
        """End the process if the block fails, because its later output cannot be trusted."""
        try:
            yield
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End the process immediately."""
        self._close(lambda process: process.kill())

    def _close(self, end: Callable[[ClientProcess], object]) -> None:
        process, self.process, self.open, self.accounted = self.process, None, False, TimeCoverage()
        if process is not None:
            end(process)
            self._end_what_it_started()
        if self.line is not None:
            self.line.close()

    def _end_what_it_started(self) -> None:
        """End the processes that the client started, even if they left its group (a pool of workers, a daemon)."""
        MarkUndo(f"client {self.name}", self.mark).execute()

    def end(self) -> None:
        """Let the process end, or end it forcibly, and remove its undo from the guardian."""
        self._close(lambda process: process.end())
        if self.guardian is not None and self.undo is not None:
            self.guardian.discard(self.undo)
            self.undo = None


class CombinedLoad(PartWriter):
    """dbdyno's own load together with external clients; `clients` has the client of each arm that uses one."""

    def __init__(self, spec: LoadSpec, clients: Mapping[int, ClientArm]) -> None:
        super().__init__(spec)
        self.clients, self.arms = clients, len(spec["arms"])
        self.names = {name: at for at, name in enumerate(self.core.statement_names())}
        self.offset_ns = time.time_ns() - time.monotonic_ns()
        self.count = 0

    def connect(self, arm: int) -> None:
        """Open the sessions of an arm."""
        if arm in self.clients:
            with contextlib.suppress(StopRequested), _name_arm(arm):
                self.clients[arm].connect()
        else:
            self.core.connect(arm)

    def disconnect(self, arm: int) -> None:
        """Close the sessions of an arm."""
        if arm in self.clients:
            self.clients[arm].disconnect()
        else:
            self.core.disconnect(arm)

    def begin_block(self, folder: Path, name: str) -> None:
        """Open the block's evidence part; clients get new transactions."""
        for client in self.clients.values():
            client.begin_block()
        super().begin_block(folder, name)

    def stop(self) -> None:
        """Ask the running work to end soon; called from a signal handler."""
        for client in self.clients.values():
            client.stopped = True
        self.core.stop()

    def close(self) -> None:
        """End the clients."""
        for client in self.clients.values():
            client.end()

    def progress(self) -> int:
        """Return the number of transactions so far."""
        return self.core.progress() + self.count

    def run(self, block: int, slices: Sequence[Slice]) -> LoadReport:
        """Run slices in their order and return the report.

        Raises:
            ClientError: A client cannot continue, or reports impossible times.
        """
        report = self._empty()
        try:
            for arm in dict.fromkeys(arm for arm, *_ in slices):
                if arm in self.clients:
                    with _name_arm(arm):
                        self.clients[arm].connect()
                        self.clients[arm].draw()
            before = self._cpu_ns()
            self._lines()
            report["started_ns"] = self._now_ns()
            for foreign, same in itertools.groupby(slices, key=lambda own: own[0] in self.clients):
                if not foreign:
                    _merge(report, self.core.run(block, list(same)))
                    continue
                for one in same:
                    self._turn(report, block, one)
            for at in dict.fromkeys(arm for arm, *_ in slices if arm in self.clients):
                with _name_arm(at):
                    self.clients[at].check_time_coverage()
            for at, used in self._cpu_ns().items():
                own_ns = used - before.get(at, used)
                report["cpu_ns"] += own_ns
                cast("ClientArmReport", report["arms"][at])["client_cpu_ns"] = own_ns
            report["lines"] = [one for one in report["lines"] if one["arm"] not in self.clients] + self._lines()
        except StopRequested:
            report["interrupted"] = True
        report["ended_ns"] = self._now_ns()
        return report

    def _turn(self, report: LoadReport, block: int, slice: Slice) -> None:
        arm, number, length_ns, transactions = slice
        client = self.clients[arm]
        with _name_arm(arm):
            ran = client.turn(number, length_ns, transactions)
        end, records = ran.end, ran.records
        failures = failures_of(records, client.job, client.process.said_errors if client.process else {})
        self._keep(arm, block, client, ran, failures)
        is_whole = records["kind"] == stream.TRANSACTION
        own, whole = report["arms"][arm], records[is_whole]
        own["transactions"] += len(whole)
        failed = failures.unexpected(is_whole)
        own["errors"] += len(failed)
        own["skipped"] += ran.skipped
        late = (records["started_ns"] - ran.intended_ns)[ran.intended_ns >= 0]
        own["lag_max_ns"] = max(own["lag_max_ns"], int(late.max(initial=0)))
        own["busy_ns"] += busy_ns(whole, end.started_ns, client.job.sessions)
        report["reconnects"] += end.statement
        if own["first_error"] is None and failed:
            own["first_error"] = failures.words[failed[0] - 1]
        self.count += len(whole)

    def _keep(self, arm: int, block: int, client: ClientArm, ran: SliceResult, failures: Failures) -> None:
        """Add a client's operations to the block's evidence part."""
        drawer, records = client.job.drawer, ran.records
        statements, scripts = drawer.statements(), drawer.scripts()
        is_script = records["kind"] == stream.TRANSACTION
        numbers = np.array([self.names[own["name"]] for own in statements] or [0])
        whole = np.array([self.names[own["name"]] for own in scripts])
        kinds = np.array([CALL_KINDS[own["kind"]] for own in statements] or [0])
        number = records["statement"].astype(np.int64)
        inner, outer = np.minimum(number, len(numbers) - 1), np.minimum(number, len(whole) - 1)
        columns = {
            "slice": records["slice"],
            "session": records["session"],
            "statement": np.where(is_script, whole[outer], numbers[inner]),
            "kind": np.where(is_script, 0, kinds[inner]),
            "started_ns": records["started_ns"] + self.offset_ns,
            "elapsed_ns": records["elapsed_ns"],
            "rows": records["rows"],
            "error": failures.numbers,
            "intended_ns": np.where(ran.intended_ns < 0, -1, ran.intended_ns + self.offset_ns),
        }
        self.core.add_calls(arm, block, {name: column.tolist() for name, column in columns.items()}, failures.listed)

    def _cpu_ns(self) -> dict[int, int]:
        """Return the CPU time that each client has used [ns]."""
        return {at: own.process.cpu_ns() for at, own in self.clients.items() if own.process is not None}

    def _lines(self) -> list[LineReport]:
        """Return how late the clients' emulated networks delivered data since the last call."""
        return [own.line.lateness(at) for at, own in self.clients.items() if own.line is not None]

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self.offset_ns

    def _empty(self) -> LoadReport:
        arms = [_nothing(arm) for arm in range(self.arms)]
        return {**empty_report(self._now_ns()), "threads": len(self.clients), "arms": arms}


@contextlib.contextmanager
def _name_arm(arm: int) -> Iterator[None]:
    """Record the arm's number in a `ClientLostError`."""
    try:
        yield
    except ClientLostError as lost:
        lost.arm = arm
        raise


def _nothing(arm: int) -> ArmReport:
    return {
        "arm": arm,
        "transactions": 0,
        "errors": 0,
        "retries": 0,
        "skipped": 0,
        "busy_ns": 0,
        "lag_max_ns": 0,
        "first_error": None,
    }


def _merge(report: LoadReport, more: LoadReport) -> None:
    """Add the report of dbdyno's own load (`more`) to that of the external clients."""
    report["reconnects"] += more["reconnects"]
    report["cpu_ns"] += more["cpu_ns"]
    report["threads"] = max(report["threads"], more["threads"])
    report["interrupted"] |= more["interrupted"]
    report["error_codes"] = more["error_codes"]
    for late in more["lines"]:
        same = next((one for one in report["lines"] if one["arm"] == late["arm"]), None)
        if same is None:
            report["lines"].append(late)
            continue
        same["pieces"] += late["pieces"]
        same["late_ns"] += late["late_ns"]
        same["late_max_ns"] = max(same["late_max_ns"], late["late_max_ns"])
    for own, given in zip(report["arms"], more["arms"], strict=True):
        for name in ("transactions", "errors", "retries", "skipped", "busy_ns"):
            own[name] += given[name]
        own["lag_max_ns"] = max(own["lag_max_ns"], given["lag_max_ns"])
        own["first_error"] = own["first_error"] or given["first_error"]
