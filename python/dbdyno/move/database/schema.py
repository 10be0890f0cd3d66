"""Statements of an archive at the target: their stages, missing owners and roles, and how they are undone.

Statements before the rows run in one transaction, together with the mark of the job: after a kill the database has all
of them or none.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.archive import SETTINGS, Entry, read
from dbdyno.move.database.programs import dump
from dbdyno.move.database.target import MARK, MARK_SQL, SCHEMA_DONE, note_entry, roles_of, user_objects
from dbdyno.move.engines.postgres.source import application_name

SECTIONS = ("--section=pre-data", "--section=post-data", "--no-blobs", f"--exclude-schema={MARK}")
BEFORE, AFTER, PRIVILEGES, REFRESH, LAST, LEFT_OUT = "before", "after", "privileges", "refresh", "last", "left out"
DATABASE_KINDS = ("DATABASE", "DATABASE PROPERTIES")
STAGES = {
    **dict.fromkeys((*SETTINGS, *DATABASE_KINDS), LEFT_OUT),
    **dict.fromkeys(("ACL", "DEFAULT ACL"), PRIVILEGES),
    "MATERIALIZED VIEW DATA": REFRESH,
    "EVENT TRIGGER": LAST,
}
TABLESPACE_KINDS = ("TABLE", "INDEX", "CONSTRAINT", "MATERIALIZED VIEW")
_PART = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|;|[^"';]++|["']""")
ROLE_FILE = "acl.c"
"""Server source file in the error for a missing role; the same whatever the language of the server's messages."""


def dump_schema(source: Postgres, programs: Binaries, file: Path, job: str, snapshot: str | None = None) -> list[Entry]:
    """Dump a database's schema into an archive, and return its entries.

    Args:
        source: The server and its database.
        programs: pg_dump.
        file: The archive to write.
        job: The job's id.
        snapshot: The exported snapshot to dump, or None for the database as it is now.

    Raises:
        MoveError: pg_dump failed.
    """
    arguments = [*SECTIONS, *([] if snapshot is None else [f"--snapshot={snapshot}"])]
    dump(source, programs, file, arguments, f"{application_name(job)} pg_dump")
    return read(file)


def by_stage(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the entries grouped by the stage in which they are restored, within each stage in the archive's order."""
    known = {one.id: one for one in entries}
    found: dict[str, list[Entry]] = {stage: [] for stage in (BEFORE, AFTER, PRIVILEGES, REFRESH, LAST, LEFT_OUT)}
    for one in entries:
        found[_stage(one, known)].append(one)
    return found


def _stage(entry: Entry, known: Mapping[int, Entry]) -> str:
    about = next((known[number] for number in entry.needs if number in known), None)
    if entry.section == "none" and about is not None and about.kind in DATABASE_KINDS:
        return LEFT_OUT
    if entry.kind in STAGES:
        return STAGES[entry.kind]
    if entry.section in ("pre-data", "post-data"):
        return BEFORE if entry.section == "pre-data" else AFTER
    # A comment or a label belongs to what it describes.
    return BEFORE if about is None else _stage(about, known)


@dataclass
class Restorer:
    """Session at the target that restores entries and notes everything that could not be restored unchanged."""

    conn: psycopg.Connection[Any]
    roles: frozenset[str]
    user: str
    tablespaces: frozenset[str]
    is_superuser: bool
    notes: list[tuple[str, str, str]] = field(default_factory=list)
    """Kind, name and object of each note that is not yet in the target."""

    @classmethod
    def for_session(cls, conn: psycopg.Connection[Any]) -> Restorer:
        """Return a restorer for a session that is prepared for the archive's statements."""
        row = conn.execute("select current_user::text, rolsuper from pg_roles where rolname = current_user").fetchone()
        spaces = frozenset(one[0] for one in conn.execute("select spcname::text from pg_catalog.pg_tablespace"))
        user, is_superuser = row or ("", False)
        return cls(conn, roles_of(conn), user, spaces, is_superuser)

    def restore(self, entry: Entry) -> None:
        """Restore one entry; must be called in a transaction.

        Raises:
            MoveError: The server refuses the statement.
        """
        try:
            self._restore(entry)
        except psycopg.Error as error:
            raise refusal(entry, error) from None

    def create_statements(self, entry: Entry) -> str:
        """Return the statements that create an object but do not set its owner."""
        words = self._settings(entry)
        return words if entry.sql.lstrip().startswith("--") else words + entry.sql

    def _restore(self, entry: Entry) -> None:
        words = self.create_statements(entry)
        if words.strip() and not self._try(words, entry):
            return
        if entry.relation_kind == "p" and entry.access_method and entry.owned_name:
            self.conn.execute(f"alter {entry.owned_name} set access method {_quote(entry.access_method)}".encode())
        self._own(entry)

    def _settings(self, entry: Entry) -> str:
        """Return the statements that set where and how the server stores an entry's object."""
        if entry.kind not in TABLESPACE_KINDS:
            return ""
        space = entry.tablespace
        if space and space not in self.tablespaces:
            self.notes.append(("tablespace", space, entry.name))
            space = ""
        method = entry.access_method if entry.relation_kind != "p" else ""
        return (
            f"set local default_tablespace = {_quote(space) if space else repr('')};\n"
            f"set local default_table_access_method = {_quote(method or 'heap')};\n"
        )

    def _try(self, words: str, entry: Entry) -> bool:
        """Execute statements; if they name a missing role, record a note and return False."""
        if entry.kind in ("POLICY", "USER MAPPING"):
            try:
                with self.conn.transaction():
                    self.conn.execute(words.encode())
            except psycopg.Error as error:
                if not _is_lacking_role(error):
                    raise
                self.notes.append(("left out", entry.name, str(error).strip().splitlines()[0]))
                return False
            return True
        self.conn.execute(words.encode())
        return True

    def _own(self, entry: Entry) -> None:
        # The schema public was there before: since PostgreSQL 15 it belongs to the database's owner.
        is_ours = entry.owner == self.user and (entry.kind, entry.tag) != ("SCHEMA", "public")
        if entry.owned_name is None or is_ours:
            return
        if entry.owner not in self.roles:
            self.notes.append(("role", entry.owner, entry.name))
            return
        words = f"alter {entry.owned_name} owner to {_quote(entry.owner)}".encode()
        if self.is_superuser:
            self.conn.execute(words)
            return
        try:
            with self.conn.transaction():
                self.conn.execute(words)
        except psycopg.errors.InsufficientPrivilege:
            self.notes.append(("owner", entry.owner, entry.name))

    def grant(self, entry: Entry) -> None:
        """Restore privileges and note those of missing roles; must be called in a transaction.

        Raises:
            MoveError: The server refuses a privilege for another reason.
        """
        try:
            with self.conn.transaction():
                self.conn.execute(entry.sql.encode())
                return
        except psycopg.Error as error:
            if not _is_lacking_role(error) and not isinstance(error, psycopg.errors.InsufficientPrivilege):
                raise refusal(entry, error) from None
        self._grant_each(entry)

    def _grant_each(self, entry: Entry) -> None:
        skipped = False
        for words in statements_of(entry.sql):
            if skipped:
                # Privileges granted by a role that is missing, or that this session may not become.
                skipped = not words.startswith("RESET SESSION AUTHORIZATION")
                continue
            try:
                with self.conn.transaction():
                    self.conn.execute(words.encode())
            except psycopg.Error as error:
                if not _is_lacking_role(error) and not isinstance(error, psycopg.errors.InsufficientPrivilege):
                    raise refusal(entry, error) from None
                kind = "grant" if _is_lacking_role(error) else "not granted"
                self.notes.append((kind, words, str(error).strip().splitlines()[0]))
                skipped = words.startswith("SET SESSION AUTHORIZATION")

    def write_notes(self) -> None:
        """Write the notes to the target, in the transaction that they are about."""
        with self.conn.cursor() as cursor:
            cursor.executemany("insert into dbdyno_move.note values (%s, %s, %s)", self.notes)
        self.notes.clear()


def statements_of(text: str) -> list[str]:
    """Return the statements of an entry with privileges, split at unquoted semicolons; it has no function bodies."""
    found, words = [], ""
    for part in _PART.findall(text):
        words += part
        if part == ";":
            found.append(words.strip())
            words = ""
    return found


def _is_lacking_role(error: psycopg.Error) -> bool:
    unknown = error.sqlstate in ("42704", "22023")
    return unknown and (error.diag.source_file or "").endswith((ROLE_FILE, "variable.c"))


def _quote(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def refusal(entry: Entry, error: psycopg.Error) -> MoveError:
    """Return the error for a statement that the target refused, with the next step."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    step = "correct the cause that the server's message names, then run `dbdyno move resume`"
    if entry.kind == "EXTENSION":
        step = f"install the package of the extension {entry.tag} on the target server, then run `dbdyno move resume`"
    elif isinstance(error, psycopg.errors.InsufficientPrivilege):
        step = "connect as a superuser or as a role with this right, then run `dbdyno move resume`"
    elif error.sqlstate == "53200":
        step = "raise max_locks_per_transaction at the target, then run `dbdyno move resume`"
    return MoveError(said, where=entry.name, next_step=step)


def restore_before(
    conn: psycopg.Connection[Any],
    entries: Iterable[Entry],
    job: str,
    folder: Path,
    *,
    drops_public: bool,
) -> None:
    """Restore everything that comes before the rows, with the mark of the job, in one transaction.

    Args:
        conn: The session at the target.
        entries: The archive's entries.
        job: The job's id.
        folder: The job's folder, which the mark names.
        drops_public: True to drop the schema public, because the source does not have it.

    Raises:
        MoveError: The server refuses a statement; nothing has changed.
    """
    restorer = Restorer.for_session(conn)
    with conn.transaction():
        try:
            conn.execute(MARK_SQL)
        except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
            raise MoveError(
                "another job has just started in this database", where=MARK, next_step="wait until that job has ended"
            ) from None
        conn.execute("insert into dbdyno_move.job values (%s, %s)", [job, str(folder.absolute())])
        if drops_public:
            with contextlib.suppress(psycopg.errors.UndefinedObject):
                conn.execute("drop schema public")
        for one in entries:
            restorer.restore(one)
        restorer.write_notes()
        note_entry(conn, SCHEMA_DONE)


def _drop(conn: psycopg.Connection[Any], words: str) -> None:
    """Drop an object, with its dependents if necessary; it may already have been dropped with another one."""
    for last in ("", " cascade"):
        with contextlib.suppress(psycopg.Error), conn.transaction():
            conn.execute((words + last).encode())
            return


def drop_created(
    conn: psycopg.Connection[Any], entries: Sequence[Entry], kept: Collection[str], *, had_public: bool
) -> None:
    """Drop the objects that a job created, and its mark, in one transaction.

    Args:
        conn: The session at the target.
        entries: The entries of the archive that was restored.
        kept: Extensions that existed before the job.
        had_public: False if the job dropped the schema public.

    Raises:
        MoveError: Something else is in the database; nothing has changed.
    """
    stages = by_stage(entries)
    with conn.transaction():
        for one in reversed([*stages[BEFORE], *stages[AFTER]]):
            is_kept = one.tag == "public" if one.kind == "SCHEMA" else one.kind == "EXTENSION" and one.tag in kept
            if one.drop.startswith("DROP ") and not is_kept:
                _drop(conn, one.drop.strip().removesuffix(";"))
        conn.execute("select lo_unlink(oid) from pg_catalog.pg_largeobject_metadata")
        conn.execute("drop schema dbdyno_move cascade")
        if not had_public:
            conn.execute("create schema if not exists public")
        found = user_objects(conn)
        if found:
            raise MoveError(
                f"the objects of an earlier attempt cannot be removed, because the database contains other "
                f"objects: {', '.join(found[:5])}",
                next_step="drop the database, create it again, and start a new job",
            )
