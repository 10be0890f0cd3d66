"""Helpers for tests of captures from logs: imports, and what each session sent according to a capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from record_help import rows

from dbdyno.snapshot.plans.log_files import recognize_logs
from dbdyno.trace.proxy.log_import import LogImport, import_logs

STAMP = "2026-11-21 00:59:57.437 UTC"


@dataclass(frozen=True)
class Sent:
    """An execution: its text, its parameters, and its SQLSTATE if it failed."""

    sql: str
    parameters: tuple[str | None, ...] = ()
    state: str | None = None


def imported(out: Path, *files: Path, prefix: str | None = None, database: str | None = None) -> LogImport:
    return import_logs(recognize_logs(files, prefix=prefix, zone=None), out, database=database)


def imported_text(folder: Path, text: str | bytes, name: str = "pg.log", **how: str | None) -> LogImport:
    """Import one file with this text as `folder/run`."""
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return imported(folder / "run", file, **how)


def log(*entries: str, at: str = STAMP, pid: int = 28) -> str:
    """Return a text log with the default prefix; each entry begins with its severity or another label."""
    return "".join(f"{at} [{pid}] {entry.replace(chr(10), chr(10) + chr(9))}\n" for entry in entries)


def _cut(body: bytes) -> tuple[bytes, bytes]:
    head, _, rest = body.partition(b"\0")
    return head, rest


def _parameters(body: bytes) -> tuple[bytes, tuple[str | None, ...]]:
    """The statement's name and the values of a Bind message, binary integers as text."""
    name, rest = _cut(_cut(body)[1])
    formats = int.from_bytes(rest[:2], "big")
    kinds = [int.from_bytes(rest[2 + 2 * at : 4 + 2 * at], "big") for at in range(formats)]
    rest = rest[2 + 2 * formats :]
    found: list[str | None] = []
    count, rest = int.from_bytes(rest[:2], "big"), rest[2:]
    for at in range(count):
        length, rest = int.from_bytes(rest[:4], "big", signed=True), rest[4:]
        if length < 0:
            found.append(None)
            continue
        kind = 0 if not kinds else kinds[0] if len(kinds) == 1 else kinds[at]
        value, rest = rest[:length], rest[length:]
        found.append(str(int.from_bytes(value, "big", signed=True)) if kind else value.decode())
    return name, tuple(found)


def sent(run: Path) -> list[list[Sent]]:
    """Return what each session of a capture sent, in order; a failure belongs to the previous execution."""
    question = "select session, side, tag, body from wire"  # in the order of the files: times are not unique
    sessions: dict[int, list[Sent]] = {}
    texts: dict[tuple[int, bytes], str] = {}
    bound: dict[int, Sent] = {}
    for session, side, tag, text in rows(run, question):
        body = text.encode("latin-1")
        own = sessions.setdefault(session, [])
        if side == "server":
            if tag == "E" and own:
                own[-1] = Sent(own[-1].sql, own[-1].parameters, body.decode())
        elif tag == "Q":
            own.append(Sent(_cut(body)[0].decode()))
        elif tag == "P":
            name, rest = _cut(body)
            texts[session, name] = _cut(rest)[0].decode()
        elif tag == "B":
            name, values = _parameters(body)
            bound[session] = Sent(texts[session, name], values)
        elif tag == "E":
            own.append(bound[session])
    return list(sessions.values())


def reasons(done: LogImport) -> dict[str, int]:
    """Return the number of unused entries or statements for each reason."""
    return {one["reason"]: one["count"] for one in done.report["unused"]}
