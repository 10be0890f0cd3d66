"""Doctor check of the kernel: whether exact waits can be recorded here and in which mode; each mode is tried."""

from __future__ import annotations

import contextlib
import grp
import platform
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dbdyno.base.errors import TraceError
from dbdyno.bench.check import Outcome

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")
VERSIONS = range(14, 19)
_PROBES = (
    "sudo dbdyno trace record --exact ... (the server's own user needs CAP_SYS_ADMIN; CAP_PERFMON before Linux 6.16)"
)
"""Since Linux 6.16, and in the stable kernels of July 2025, CAP_PERFMON no longer allows probes of programs."""
_WITHOUT = "`dbdyno trace record` cannot record; runs sample waits instead"
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"), Path("/run/systemd/container"))
_ADMIN = 21
_WITH = "sudo setpriv --reuid={0} --regid={1} --init-groups --inh-caps=+{2} --ambient-caps=+{2} dbdyno ..."
"""Command that runs dbdyno as the server's user with one capability."""


def exact_waits(target: Postgres, conn: Connection) -> Outcome:
    """Check whether `dbdyno trace record` can record this server, and in which mode."""
    if not target.is_here(conn):
        return Outcome(None, "the server is on another machine", _WITHOUT, "run dbdyno on the server's machine")
    if platform.machine() != "x86_64":
        return Outcome(False, f"this is {platform.machine()}", "exact waits can be recorded on x86-64 only")
    major = conn.info.server_version // 10_000
    if major not in VERSIONS:
        return Outcome(False, f"PostgreSQL {major}", "exact waits can be recorded for PostgreSQL 14 to 18")
    return kernel_allows(conn.info.backend_pid)


def kernel_allows(pid: int) -> Outcome:
    """Return which recording modes the kernel allows for the server of process `pid`; each mode is tried once."""
    from dbdyno import _core

    sites, no_sites = _try(_core.trap_cost_ns)
    watch, no_watch = _try(lambda: _core.watch_cost_ns(pid))
    read, no_read = _try(lambda: _core.read_cost(pid))
    found = _exact(pid, (sites, no_sites), (watch, no_watch))
    by_looks = _looks(pid, *read) if read is not None else f"not mode read: {no_read}"
    if not found.ok and read is not None:
        does = "`dbdyno trace record` reads waits, accurate to the time between two looks"
        return Outcome(True, f"{by_looks}; no exact times: {found.found}; to get them: {found.next}", does)
    return found._replace(found=f"{found.found}; {by_looks}")


def _looks(pid: int, look_ns: int, unmapped: str | None) -> str:
    """Return a text that says how the server's memory can be read, and what a missing capability would improve."""
    told = f"mode read, {look_ns / 1e3:.2f} us per look at all sessions"
    if unmapped is None:
        return told
    by = _WITH.format(*_owner(pid), "checkpoint_restore")
    return f"{told} by copying; CAP_CHECKPOINT_RESTORE would map the memory ({unmapped}): about 0.1 us a look ({by})"


def _exact(pid: int, of_sites: tuple[int | None, str], of_watch: tuple[int | None, str]) -> Outcome:
    """Return the check of whether waits can be timed exactly."""
    (sites, no_sites), (watch, no_watch) = of_sites, of_watch
    if sites is not None:
        also = f"; mode watch, {watch / 1e3:.2f} us" if watch is not None else ""
        return Outcome(
            True,
            f"mode sites, {sites / 1e3:.2f} us of CPU per probe{also}",
            "`dbdyno trace record --exact` times every wait of this server; most statements pass five to ten probes",
        )
    if watch is not None:
        return Outcome(
            True,
            f"mode watch, {watch / 1e3:.2f} us of CPU per event; not mode sites: {no_sites} ({kernel_settings()});"
            f" for mode sites: {_PROBES}",
            "`dbdyno trace record --exact` times every wait of this server; rows, SQLSTATEs and the first milliseconds"
            " of sessions need mode sites, at a tenth of the CPU",
        )
    return Outcome(False, f"{no_sites}; {no_watch} ({kernel_settings()})", _WITHOUT, _allowing_command(pid))


def _try(ask: Callable[[], T]) -> tuple[T | None, str]:
    try:
        return ask(), ""
    except TraceError as error:
        return None, error.message.splitlines()[0]


def _allowing_command(pid: int) -> str:
    """Return the command that allows more recording; it runs as the server's user, who needs no extra privileges."""
    user, _ = _owner(pid)
    return f"sudo -u {user} dbdyno trace record ...; for mode sites: {_PROBES}"


def _owner(pid: int) -> tuple[str, str]:
    """Return user and group of a process by name, or by number if one of them has no name."""
    owner = Path(f"/proc/{pid}").stat()
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(owner.st_uid).pw_name, grp.getgrgid(owner.st_gid).gr_name
    return str(owner.st_uid), str(owner.st_gid)


def kernel_settings() -> str:
    """Return the kernel settings that restrict recording, as one comma-separated phrase."""
    try:
        found = [f"perf_event_paranoid {_PARANOID.read_text().strip()}"]
    except OSError:
        return "a kernel without perf events"
    if not _has_admin():
        found.append("without CAP_SYS_ADMIN")
    if any(mark.exists() for mark in _CONTAINERS):
        found.append("in a container")
    if _LOCKDOWN.exists() and "[none]" not in _LOCKDOWN.read_text():
        found.append("kernel lockdown")
    if _YAMA.exists() and _YAMA.read_text().strip() != "0":
        found.append(f"ptrace_scope {_YAMA.read_text().strip()}")
    return ", ".join(found)


def _has_admin() -> bool:
    """Return True if this process has CAP_SYS_ADMIN, which allows probes on every kernel."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) & 1 << _ADMIN for line in lines)
