"""Load generators held by workers: each has a share of the sessions and runs slices at given times.

A load is kept under a token from one task to the next. It ends, and its sessions are closed, if its runner has not
renewed it for `LEASE_S`, whatever the reason: the runner, the scheduler or the network may be gone.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import TargetError
from dbdyno.hosts.clock import ClockServer, SteadyClock
from dbdyno.hosts.load_reports import HostReport, HostSlice, merge_reports
from dbdyno.hosts.shared_folder import PlacedPart, place_part, refuse_unshared_folder
from dbdyno.hosts.tasks import stop_if_unwanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.base.core_types import LoadSpec

LEASE_S = 15.0
LATE_SHARE = 0.5
"""A host skips a slice whose start would be late by more than this share of the slice's length."""

_HELD: dict[str, WorkerLoad] = {}


class LoadClock(NamedTuple):
    """Address of the clock of a worker's load, and its largest difference from the load generator's own clock [ns]."""

    address: str
    port: int
    key: bytes
    error_ns: int


class WorkerLoad(Closeable):
    """A load generator on a worker."""

    def __init__(self, spec: LoadSpec, address: str, shared: Path | None = None) -> None:
        from dbdyno import _core

        self.clock = SteadyClock()
        self.core = _core.Load(spec)
        self.error_ns = abs(SteadyClock().base_ns - self.clock.base_ns) + 1_000  # it reads the same two clocks between
        self.server = ClockServer(self.clock.now_ns, address)
        self.folder = tempfile.TemporaryDirectory(prefix="dbdyno-load-")
        self.arms, self.renewed_s, self.is_closed, self.shared = len(spec["arms"]), time.monotonic(), False, shared

    def close(self) -> None:
        """Close the sessions and delete results that were not fetched."""
        self.is_closed = True
        self.core.stop()
        self.server.close()
        for arm in range(self.arms):
            self.core.disconnect(arm)
        self.core.abandon_block()
        self.folder.cleanup()

    def connect(self, arm: int) -> list[int]:
        """Open the sessions of an arm, and return the numbers by which the server knows them."""
        self.core.connect(arm)
        return self.core.server_sessions(arm)

    def disconnect(self, arm: int) -> None:
        """Close the sessions of an arm."""
        self.core.disconnect(arm)

    def begin_block(self, name: str) -> list[list[int]]:
        """Begin a block's part, discard an unfinished one, and return the session numbers of each arm."""
        self.core.abandon_block()
        self.core.begin_block(Path(self.folder.name), name)
        return [self.core.server_sessions(arm) for arm in range(self.arms)]

    def run_slices(self, block: int, slices: Sequence[HostSlice]) -> HostReport | None:
        """Run each slice from start to end on this host's clock; return None if all would have started too late."""
        ran, reports = [], []
        for planned in slices:
            if not self._reached(planned.started_ns):
                break
            left_ns = planned.ended_ns - self.clock.now_ns()
            if left_ns < (1 - LATE_SHARE) * (planned.ended_ns - planned.started_ns):
                continue
            report = self.core.run(block, [(planned.arm, planned.slice, left_ns, None)])
            ran.append(HostSlice(planned.arm, planned.slice, report["started_ns"], report["ended_ns"]))
            reports.append(report)
            if report["interrupted"]:
                break
        return HostReport(ran, merge_reports(reports, beside=False)) if reports else None

    def end_block(self, name: str) -> bytes | PlacedPart:
        """Complete the block's part and return its bytes, or its place in the shared folder; empty if it has no rows.

        Raises:
            TargetError: The shared folder cannot be written.
        """
        self.core.end_block()
        part = Path(self.folder.name) / f"{name}.parquet"
        if not part.exists():
            return b""
        try:
            return part.read_bytes() if self.shared is None else place_part(part, self.shared)
        finally:
            part.unlink()

    def _reached(self, at_ns: int) -> bool:
        """Wait until a given time; return False if the load was closed meanwhile."""
        while (left_ns := at_ns - self.clock.now_ns()) > 0:
            if self.is_closed:
                return False
            time.sleep(min(left_ns / 1e9, 0.1))
        return not self.is_closed


def open_load(token: str, spec: LoadSpec, shared: tuple[Path, str] | None = None) -> LoadClock:
    """Create a load generator on this worker, and return what is needed for comparing its clock.

    Args:
        token: Key under which the worker keeps the load.
        spec: The load, with this host's share of the sessions.
        shared: Shared folder of the command for parts, and the word that identifies it; None if parts go through the
            scheduler.

    Raises:
        TargetError: The load's server refuses the login, or the shared folder is not visible on this host.
        PlanError: The load is not valid.
    """
    if shared is not None:
        refuse_unshared_folder(*shared)
    drop_renewals_from_log()
    worker = importlib.import_module("distributed").get_worker()
    address = str(urlsplit(worker.address).hostname)
    load = WorkerLoad(spec, address, shared[0] if shared else None)
    _HELD[token] = load
    threading.Thread(target=_expire, args=(token, load), name="lease", daemon=True).start()
    return LoadClock(address, load.server.port, load.server.key, load.error_ns)


def _expire(token: str, load: WorkerLoad) -> None:
    while not load.is_closed:
        time.sleep(LEASE_S / 15)
        if time.monotonic() - load.renewed_s > LEASE_S:
            close_load(token)
            if load.shared is not None:
                shutil.rmtree(load.shared, ignore_errors=True)


def call_load(token: str, method: str, *arguments: Any) -> Any:
    """Call a method of the load with this token; the call is stopped soon after nobody waits for it any longer.

    Raises:
        TargetError: The worker has no load with this token: the worker was restarted, or the lease has expired.
    """
    load = _HELD.get(token)
    if load is None:
        raise TargetError(
            "no longer has a load of this run",
            next_step="start the worker again, then continue with `dbdyno run --resume last`",
        )
    with stop_if_unwanted(load.core.stop):
        return getattr(load, method)(*arguments)


def renew_load(token: str) -> int:
    """Keep a load for another `LEASE_S`, and return its number of transactions so far; -1 if it does not exist."""
    load = _HELD.get(token)
    if load is None:
        return -1
    load.renewed_s = time.monotonic()
    return load.core.progress()


class _Renewals(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.args != (renew_load.__name__,)


def drop_renewals_from_log() -> None:
    """Filter out the line that a worker would log at each renewal of a load, twice a second."""
    log = logging.getLogger("distributed.worker")
    if not any(isinstance(one, _Renewals) for one in log.filters):
        log.addFilter(_Renewals())


def stop_load(token: str) -> None:
    """Ask a load to stop soon; do nothing if this worker does not have it."""
    if (load := _HELD.get(token)) is not None:
        load.core.stop()


def close_load(token: str) -> None:
    """Close a load if this worker has it."""
    load = _HELD.pop(token, None)
    if load is not None:
        with contextlib.suppress(Exception):
            load.close()
