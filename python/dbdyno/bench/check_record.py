"""What the doctor asks the kernel: whether exact waits can be recorded here, tried on an instruction of our own."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.check import Check
from dbdyno.errors import TraceError

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

NAME = "exact waits"
VERSIONS = range(14, 19)
_RIGHTS = (
    "capsh --caps='cap_perfmon,cap_sys_ptrace+eip' -- -c 'dbdyno trace record ...', or sudo dbdyno trace record ..."
)
_WITHOUT = "`dbdyno trace record` cannot record; runs sample waits instead"
_LOCKDOWN = Path("/sys/kernel/security/lockdown")


def exact_waits(target: Postgres, conn: Connection) -> Check:
    """Whether `dbdyno trace record` may probe this server."""
    if not target.is_here(conn):
        return Check(NAME, None, "the server is elsewhere", _WITHOUT, "run dbdyno on the server's machine")
    if platform.machine() != "x86_64":
        return Check(
            NAME, False, f"this is {platform.machine()}", "exact waits are recorded on x86-64 alone so far", ""
        )
    major = conn.info.server_version // 10_000
    if major not in VERSIONS:
        return Check(NAME, False, f"PostgreSQL {major}", "exact waits are recorded of 14 to 18", "")
    return kernel_allows()


def kernel_allows() -> Check:
    """One probe on our own code: what the kernel does says more than its settings."""
    from dbdyno import _core

    try:
        cost_ns = _core.trap_cost_ns()
    except TraceError as error:
        return Check(NAME, False, f"{error.message.splitlines()[0]} ({settings()})", _WITHOUT, _RIGHTS)
    return Check(
        NAME,
        True,
        f"mode sites, {cost_ns / 1e3:.2f} us of CPU a probe",
        "`dbdyno trace record` times every wait of this server; most statements meet five to ten probes",
        "",
    )


def settings() -> str:
    """The kernel's settings that bear on it."""
    try:
        found = [f"perf_event_paranoid {Path('/proc/sys/kernel/perf_event_paranoid').read_text().strip()}"]
    except OSError:
        return "a kernel without perf events"
    if _LOCKDOWN.exists() and "[none]" not in _LOCKDOWN.read_text():
        found.append("kernel lockdown")
    return ", ".join(found)
