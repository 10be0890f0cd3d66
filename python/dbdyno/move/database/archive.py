"""Contents of an archive in pg_dump's custom format: one entry for each object, with its SQL.

Entries are read from the file itself and not from a script, so that no text in a source's object can be
mistaken for the beginning of another statement. Format versions 1.12 (PostgreSQL 9.0) to 1.16 (17, 18) are known.

    head      PGDMP, version (3 bytes), size of integers, size of offsets, format, compression, time, three texts
    entries   number, then for each: its ids, tag, kind, section, SQL that makes and drops it, schema, ..., dependencies
    integers  a byte for the sign, then the number with its least byte first
    texts     the length as an integer (below 0: none), then UTF-8
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import MoveError
from dbdyno.base.sql_text import quoted

MAGIC = b"PGDMP"
CUSTOM = 1
OLDEST, NEWEST = (1, 12), (1, 16)
SECTIONS = {1: "none", 2: "pre-data", 3: "data", 4: "post-data"}
SETTINGS = ("ENCODING", "STDSTRINGS", "SEARCHPATH")
"""Kinds of entries that only set up the session."""
OWNABLE_KINDS = frozenset(
    (
        *("AGGREGATE", "COLLATION", "CONVERSION", "DOMAIN", "EVENT TRIGGER", "FOREIGN DATA WRAPPER", "FOREIGN TABLE"),
        *("FUNCTION", "MATERIALIZED VIEW", "OPERATOR", "OPERATOR CLASS", "OPERATOR FAMILY", "PROCEDURE"),
        *("PROCEDURAL LANGUAGE", "PUBLICATION", "SCHEMA", "SEQUENCE", "SERVER", "STATISTICS", "SUBSCRIPTION", "TABLE"),
        *("TEXT SEARCH CONFIGURATION", "TEXT SEARCH DICTIONARY", "TYPE", "VIEW"),
    )
)
"""Kinds of objects that ALTER ... OWNER TO accepts."""


@dataclass(frozen=True)
class Entry:
    """One object of an archive, or something attached to an object (a comment, privileges)."""

    id: int
    kind: str
    schema: str
    tag: str
    section: str
    sql: str
    drop: str
    owner: str
    tablespace: str
    access_method: str
    relation_kind: str
    needs: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return kind and name of the object for messages."""
        return f"{self.kind.lower()} {self.schema + '.' if self.schema else ''}{self.tag}"

    @property
    def owned_name(self) -> str | None:
        """Return the object's name for ALTER ... OWNER TO, or None if it has no owner of its own."""
        if not self.owner or self.kind not in OWNABLE_KINDS:
            return None
        if self.kind == "SCHEMA":
            return f"SCHEMA {quoted(self.tag)}"
        return self.drop.strip().removesuffix(";").removeprefix("DROP ") if self.drop.startswith("DROP ") else None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path) -> list[Entry]:
    """Return the entries of an archive in the archive's order, in which they can be restored.

    Raises:
        MoveError: The file is not an archive, or its version is not known.
    """
    reader = _Reader(path.read_bytes(), path)
    try:
        reader.head()
        return [reader.entry() for _ in range(reader.integer())]
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise reader.error(f"is not a complete archive of pg_dump: {error}") from None


class _Reader:
    def __init__(self, data: bytes, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0
        self.version = (0, 0)
        self.integer_bytes = self.offset_bytes = 0

    def error(self, what: str) -> MoveError:
        return MoveError(
            what, where=str(self.path), next_step="move the database again with another version of pg_dump"
        )

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) != count:
            raise ValueError(f"the archive ends at byte {len(self.data)}")
        self.at += count
        return part

    def integer(self) -> int:
        sign, number = self.take(1)[0], int.from_bytes(self.take(self.integer_bytes), "little")
        return -number if sign else number

    def text(self) -> str:
        length = self.integer()
        return "" if length < 0 else self.take(length).decode()

    def has_text(self) -> str | None:
        length = self.integer()
        return None if length < 0 else self.take(length).decode()

    def head(self) -> None:
        if self.take(5) != MAGIC:
            raise ValueError("its first bytes are not those of an archive of pg_dump")
        major, minor, _, self.integer_bytes, self.offset_bytes, form = self.take(6)
        self.version = (major, minor)
        if not OLDEST <= self.version <= NEWEST or form != CUSTOM:
            raise self.error(f"is an archive of version {major}.{minor}, format {form}, which dbdyno cannot read")
        if self.version >= (1, 15):
            self.take(1)
        else:
            self.integer()
        for _ in range(7):
            self.integer()
        for _ in range(3):
            self.text()

    def entry(self) -> Entry:
        number, _ = self.integer(), self.integer()
        self.text()  # OIDs of catalogue and object
        self.text()
        tag, kind, section = self.text(), self.text(), SECTIONS[self.integer()]
        sql, drop, _ = self.text(), self.text(), self.text()
        schema, tablespace = self.text(), self.text()
        method = self.text() if self.version >= (1, 14) else ""
        relation_kind = chr(self.integer()) if self.version >= (1, 16) else ""
        owner = self.text()
        self.text()  # whether the table has OIDs
        needs = []
        while (one := self.has_text()) is not None:
            needs.append(int(one))
        self.take(1 + self.offset_bytes)
        return Entry(
            number, kind, schema, tag, section, sql, drop, owner, tablespace, method, relation_kind, tuple(needs)
        )
