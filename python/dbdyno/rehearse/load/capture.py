"""Load from a capture: `dbdyno trace proxy --binds`, or `dbdyno trace import --log`."""

from __future__ import annotations

from pathlib import Path

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.evidence.captures import is_of_mariadb, open_capture
from dbdyno.evidence.encryption import messages_of
from dbdyno.evidence.memory import memory_connection
from dbdyno.evidence.run import Run
from dbdyno.evidence.trace_tables import create_views
from dbdyno.rehearse.rehearsed_statement import CUSTOM_PLANS
from dbdyno.rehearse.statement import Load, Parameters, Statement

SAMPLES = 5
UNSETTLED = "its sessions had settings of SET LOCAL or set_config, which a rehearsal does not repeat"


def load_of_capture(folder: Path, database: str, samples: int = SAMPLES, key_file: Path | None = None) -> Load:
    """Return the distinct statements of a capture, with sample executions chosen by quantiles of their time.

    Args:
        folder: The captured run.
        database: Database of the old server. If the capture has sessions of this database, those of others are left
            out.
        samples: Number of sample executions of each statement.
        key_file: Key of the messages if they are encrypted.

    Raises:
        TraceError: The run has no messages.
        EvidenceError: The evidence cannot be read.
    """
    run = open_capture(folder)
    users = _sessions(run)
    others = {name for _, name in users.values()} - {database}
    is_kept = database in {name for _, name in users.values()}
    kept = {session: who for session, who in users.items() if not is_kept or who[1] == database}
    groups = {who: at for at, who in enumerate(dict.fromkeys(kept.values()), 1)}
    numbers = {session: groups[who] for session, who in kept.items()}
    with messages_of(run, key_file) as messages:
        found = _core.captured_statements(messages, numbers, samples, is_of_mariadb(run))
    names = {number: who for who, number in groups.items()}
    rows = [row for row in found if row[1] in names or not users]
    if not rows:
        raise TraceError(
            "contains no statement of a client",
            where=str(folder),
            next_step="record the capture again while the load runs",
        )
    statements = [_statement(at, row, names.get(row[1], ("", ""))[0]) for at, row in enumerate(rows, 1)]
    notes = []
    if is_kept and others:
        notes.append(f"Sessions of other databases are left out: {', '.join(sorted(others))}.")
    if others and not is_kept:
        notes.append(
            f"The capture is of database {', '.join(sorted(others))}; its statements are executed in {database}."
        )
    if cut := sum(row[6] for row in rows):
        notes.append(f"{cut:,} executions were not captured with all their values; they count, but not as samples.")
    return Load(str(folder), "capture", statements, tuple(notes))


def _statement(number: int, row: _core.CapturedStatement, user: str) -> Statement:
    text, _, settings, calls, failed, total_ns, _, samples, prepared, unsettled = row
    return Statement(
        number,
        text,
        calls,
        total_ns,
        failed,
        user,
        tuple(settings),
        tuple(
            Parameters(
                said.decode("utf-8", "surrogateescape"),
                tuple(values),
                tuple(binary),
                tuple(types),
                elapsed_ns,
                "captured" if values or is_simple else "none",
                is_simple,
                bool(values) and prepared > CUSTOM_PLANS,
            )
            for elapsed_ns, said, values, binary, types, is_simple in samples
        ),
        left_out=UNSETTLED if 2 * unsettled > calls else "",
    )


def _sessions(run: Run) -> dict[int, tuple[str, str]]:
    """Return the user and database of each session, taken from its name: `psql 4711 (user@database)`."""
    with memory_connection() as connection:
        create_views(connection, run)
        rows = connection.execute("select session, name from sessions").fetchall()
    found = {}
    for session, name in rows:
        user, at, database = str(name).rpartition("(")[2].removesuffix(")").partition("@")
        if at:
            found[int(session)] = (user, database)
    return found
