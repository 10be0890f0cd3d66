"""Study redo-size: how does the time of a commit depend on the redo written before it?

One session commits transactions of random redo size, as fine-grained as the load can be: every
commit draws its own size, so that drift of the machine hits all sizes alike. The redo is made by
`pg_logical_emit_message`, which writes exactly so many bytes into the write-ahead log and touches
no table; sizes are not assumed but read from the log's position before each commit (`\\redo`).

Limits: the function must be executable for the role (it is by default); a commit waits for redo of
all sessions, so other writers on the engine blur the curve; no standby.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.errors import PlanError
from dbdyno.study.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.study import Factor, Study

_UNITS = {"": 1, "B": 1, "KB": 1000, "KIB": 1024, "MB": 10**6, "MIB": 2**20, "K": 1024, "M": 2**20}
_CHUNK = 8192
_LARGEST = 256 * 2**20

_COMMIT = """\
begin;
select count(pg_logical_emit_message(true, 'dbdyno', repeat('r', least(:bytes - at, {chunk})::int)))
from generate_series(0, :bytes - 1, {chunk}) at;
\\redo
commit;
"""


def size_bytes(text: str) -> int:
    """Bytes of '64KiB', '1MiB' or '4096'; raises `PlanError`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?i?[bB]?)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise PlanError(
            f"{text!r} is no size",
            where="--set redo_bytes",
            next_step="write 8KiB..4MiB for a range, or a list such as 64KiB,512KiB,1MiB",
        )
    size = round(float(match[1]) * _UNITS[match[2].upper()])
    if not 1 <= size <= _LARGEST:
        raise PlanError(f"{text!r} lies outside 1 byte to 256 MiB", where="--set redo_bytes")
    return size


def _draw(redo_bytes: str) -> str:
    """The script lines that draw the size of the next transaction."""
    if ".." in redo_bytes:
        low, high = (size_bytes(part) for part in redo_bytes.split("..", 1))
        if low >= high:
            raise PlanError(f"{redo_bytes!r} is an empty range", where="--set redo_bytes")
        return f"\\set bytes random({low}, {high})\n"
    levels = [size_bytes(part) for part in redo_bytes.split(",")]
    if len(levels) < 3:
        raise PlanError(
            f"{redo_bytes!r} names {len(levels)} size(s); a curve needs 3 or more",
            where="--set redo_bytes",
        )
    cases = " ".join(f"when :level = {at} then {size}" for at, size in enumerate(levels))
    return f"\\set level random(0, {len(levels) - 1})\n\\set bytes case {cases} end\n"


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    try:
        sessions = int(options["sessions"])
    except ValueError as error:
        raise PlanError(f"{options['sessions']!r} is no number", where="--set sessions") from error
    script = _draw(options["redo_bytes"]) + _COMMIT.format(chunk=_CHUNK)
    blocks = 8 if quick else 40
    return Plan(
        title="redo-size",
        question=STUDY.question,
        study="redo-size",
        kind="curve",
        arms=[Arm("commit", description=f"redo per commit {options['redo_bytes']}")],
        workload=Workload([Script("commit of random redo size", script)]),
        sessions=sessions,
        schedule=Schedule(
            blocks=blocks,
            warmup_blocks=1 if quick else 2,
            turn_ns=2_000_000_000,
            settle_ns=0,
            switch="turns",
        ),
        watch=Watch(overhead_blocks=1 if quick else 2),
        judge=Judge(headline="mean"),
    )


STUDY = Study(
    name="redo-size",
    question="Does the time of a commit grow with the redo before it, and is there a sawtooth?",
    workload="One session; each transaction writes a random amount of redo with "
    "pg_logical_emit_message, reads the position of the write-ahead log, and commits. The commit "
    "is timed on its own, the redo since the last commit comes from the log's position.",
    targets="postgres: embedded by default, or --target postgresql://... (not a standby)",
    source="Guy Harrison, 2012: redo size against 'log file sync' time on Oracle (E5)",
    found_there="A sawtooth with a period of 1 MB: the wait rises to 1 MB of redo, then falls, "
    "because the log writer flushes on its own at each megabyte; there was never more than about "
    "1 MB left to wait for. PostgreSQL's WAL writer works by another rule (it wakes by time, "
    "wal_writer_delay), so the sawtooth is looked for here and not taken for granted.",
    factors=(
        Factor("redo_bytes", "range or list of redo sizes per commit", "4KiB..12MiB"),
        Factor("sessions", "concurrent sessions", "1"),
    ),
    make=_plan,
)
