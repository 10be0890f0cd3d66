"""Doctor check of the kernel: whether exact waits can be recorded here and in which mode; each mode is tried."""

from __future__ import annotations

import contextlib
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
_RIGHTS = (
    "capsh --caps='cap_perfmon,cap_sys_ptrace+eip' -- -c 'dbdyno trace record ...', or sudo dbdyno trace record ..."
)
_WITHOUT = "`dbdyno trace record` cannot record; runs sample waits instead"
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"), Path("/run/systemd/container"))
_CAPABILITIES = {38: "CAP_PERFMON", 19: "CAP_SYS_PTRACE"}
_ADMIN = 21


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
    by_looks = _looks(*read) if read is not None else f"not mode read: {no_read}"
    if not found.ok and read is not None:
        does = "`dbdyno trace record` reads waits, accurate to the time between two looks"
        return Outcome(True, f"{by_looks}; no exact times: {found.found}; to get them: {found.next}", does)
    return found._replace(found=f"{found.found}; {by_looks}")


def _looks(look_ns: int, unmapped: str | None) -> str:
    """Return a text that says how the server's memory can be read, and what a missing capability would improve."""
    told = f"mode read, {look_ns / 1e3:.2f} us per look at all sessions"
    if unmapped is None:
        return told
    return f"{told} by copying; CAP_CHECKPOINT_RESTORE would map the memory ({unmapped}): about 0.1 us a look"


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
            " for mode"
            f" sites: {_RIGHTS}",
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
    with contextlib.suppress(OSError, KeyError):
        owner = pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name
        return f"sudo -u {owner} dbdyno trace record --mode watch ...; for mode sites: {_RIGHTS}"
    return _RIGHTS


def kernel_settings() -> str:
    """Return the kernel settings that restrict recording, as one comma-separated phrase."""
    try:
        found = [f"perf_event_paranoid {_PARANOID.read_text().strip()}"]
    except OSError:
        return "a kernel without perf events"
    lacking = _missing_capabilities()
    if lacking:
        found.append("without " + " and ".join(lacking))
    if any(mark.exists() for mark in _CONTAINERS):
        found.append("in a container")
    if _LOCKDOWN.exists() and "[none]" not in _LOCKDOWN.read_text():
        found.append("kernel lockdown")
    if _YAMA.exists() and _YAMA.read_text().strip() != "0":
        found.append(f"ptrace_scope {_YAMA.read_text().strip()}")
    return ", ".join(found)


def _missing_capabilities() -> list[str]:
    """Return the capabilities needed for recording that this process does not have."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            has = int(line.split()[1], 16)
            return [name for bit, name in _CAPABILITIES.items() if not has & (1 << bit | 1 << _ADMIN)]
    return []
