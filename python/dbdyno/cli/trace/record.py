"""`dbdyno trace record`: the waits of a live PostgreSQL, read from its memory or exactly timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.limits import Number
from dbdyno.cli.parameters import FOLDER
from dbdyno.cli.trace.options import wait_for

if TYPE_CHECKING:
    from dbdyno.trace.record.recording import Recording

_PID_MOST = 1 << 22
"""Maximum process ID on Linux."""
_ANY_PATH = click.Path(path_type=Path, readable=False)
"""Path that this user may not be allowed to read: the error then says who may."""


@click.command("record")
@click.option("--target", "dsn", metavar="DSN", help="Connection string of the server, which must run on this machine.")
@click.option(
    "--pid",
    type=click.IntRange(1, _PID_MOST),
    metavar="P",
    help="Process id of the postmaster, to record all sessions, or of a backend, to record only that session.",
)
@click.option("--datadir", type=_ANY_PATH, metavar="DIR", help="The server's data folder.")
@click.option("--database", help="Record only sessions of this database.")
@click.option("--user", help="Record only sessions of this user.")
@click.option("--for", "length", metavar="TIME", help="Stop after this time, such as 60s (default: until Ctrl-C).")
@click.option(
    "--mode",
    type=click.Choice(["sites", "watch", "read"]),
    help="How to record. read: read the server's memory, at no cost to the server; sites: set probes in its code; "
    "watch: set watchpoints, which the server's operating-system user may also do. Default: the first of these that is "
    "allowed.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Time every wait exactly, at a cost to the server: probes, or watchpoints if probes are not allowed.",
)
@click.option("--out", type=FOLDER, metavar="RUN", help="Run folder to create. Default: runs/<time>-waits.")
@click.option(
    "--cost-limit",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Limit for the cost of recording in percent; 0: no limit. Probes may take this share of a backend's time "
    "(default: 5); above it, fewer and finally no waits are recorded. With --mode read, dbdyno may use this share of "
    "the machine (default: 2, or one processor if there are at least four and one is idle); above it, the memory is "
    "read less often.",
)
@click.option(
    "--details", is_flag=True, help="Also record when each bind begins (one more event per call); needs --exact."
)
def command(
    dsn: str | None,
    pid: int | None,
    datadir: Path | None,
    database: str | None,
    user: str | None,
    length: str | None,
    mode: str | None,
    exact: bool,
    out: Path | None,
    cost_limit: float | None,
    details: bool,
) -> None:
    """Record the waits and calls of a PostgreSQL server (versions 14 to 18) on this machine.

    The server is neither changed nor restarted. By default dbdyno reads the server's memory, which stops nothing: the
    length of each wait is known to within the time between two looks. With --exact the kernel notes when the server's
    code begins and ends a wait, so every wait is recorded and exactly timed; this costs each backend about 1 us per
    wait. Reading needs root or the server's own user; probes need root, or CAP_SYS_ADMIN as that user. `dbdyno doctor
    --target DSN` shows what is allowed. All commands on traces can read the run.

    \b
    dbdyno trace record --target postgresql://localhost/app --for 60s --out runs/now
    dbdyno trace record --target postgresql://localhost/app --for 60s --exact --out runs/exact
    dbdyno trace profile runs/now
    """
    if exact and mode in ("read", "watch"):
        raise click.UsageError(f"--exact and --mode {mode} exclude each other; choose one")
    if details and not exact and mode in (None, "read"):
        raise click.UsageError("--details has no effect without --exact: add --exact")
    from dbdyno.trace.record.process import find_process
    from dbdyno.trace.record.recording import RecordingOptions, recording
    from dbdyno.trace.record.texts import texts_of
    from dbdyno.trace.units import length_ns

    for_ns = length_ns(length, "--for") if length else None
    out = out or Path("runs") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-waits"
    place = find_process(dsn, pid, datadir)
    share = None if cost_limit is None else cost_limit / 100
    wanted = RecordingOptions(database, user, for_ns, share, details, mode or ("exact" if exact else None))
    texts = partial(texts_of, dsn) if dsn else None
    with recording(place, out, wanted, texts) as it:
        if it.fallback_reason:
            click.echo(f"dbdyno: {it.fallback_reason}", err=True)
        wait_for(it.is_over, _line_of(it))
    for warning in it.warnings:
        click.echo(f"dbdyno: {warning}", err=True)
    click.echo(f"{out}: {it.report['calls']} calls, {it.report['waits']} waits of {it.report['sessions_all']} sessions")
    click.echo(f"next: dbdyno trace profile {out}", err=True)
    if it.report.get("lost") or it.report.get("undecoded") or it.report.get("refused"):
        raise click.exceptions.Exit(2)


def _line_of(it: Recording) -> Callable[[], str | None]:
    """Return a function that returns the line of figures, or None if there are no new ones."""
    before = dict[str, Any]()

    def line() -> str | None:
        nonlocal before
        earlier, before = before, it.read_report()
        return status_line(before, earlier) if before.get("elapsed_ns") != earlier.get("elapsed_ns") else None

    return line


def status_line(report: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Return a line with sessions, recorded notes per second, lost notes, and overhead."""
    if not report:
        return "waiting for the first events"
    over_s = (report["elapsed_ns"] - before.get("elapsed_ns", 0)) / 1e9
    notes = report["notes"] - before.get("notes", 0)
    rate = notes / over_s if over_s > 0 else 0
    cores = (report["probes_ns"] - before.get("probes_ns", 0)) / (over_s * 1e9) if over_s > 0 else 0
    own = (report["own_cpu_ns"] - before.get("own_cpu_ns", 0)) / (over_s * 1e9) if over_s > 0 else 0
    head = f"{report['elapsed_ns'] / 1e9:.0f} s: {report['sessions']} sessions, {report['waits']:,} waits"
    if report.get("mode") == "read":
        looks = (report["looks"] - before.get("looks", 0)) / over_s if over_s > 0 else 0
        return f"{head}, {looks:,.0f} looks/s, {report['gaps']:,} gaps; recorder {own:.1%} of a core"
    by = "watchpoints" if report.get("mode") == "watch" else "probes"
    given_up = "".join(f"; {shed.partition(':')[0]}" for shed in report.get("shed", []))
    lost = f"{rate:,.0f} notes/s, {report['lost']:,} lost"
    return f"{head}, {lost}; {by} {cores:.1%}, recorder {own:.1%} of a core{given_up}"
