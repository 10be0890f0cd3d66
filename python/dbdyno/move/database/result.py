"""Result of moving a database: what arrived, what was checked, and what the user still has to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from dbdyno.base.json_types import JsonObject
from dbdyno.move.database.archive import Entry
from dbdyno.move.nouns import with_noun

SHOWN = 20
NOT_COUNTED = ("TABLE ATTACH", "INDEX ATTACH", "SEQUENCE OWNED BY", "SEQUENCE SET", "DEFAULT", "COMMENT", "ACL")
"""Kinds of entries that are parts of other objects."""
NOTES = {
    "role": "role {name} is missing at the target: the job's role owns its objects, and its privileges are left out",
    "owner": "not given to {name}, because the job's role may not act for it",
    "tablespace": "tablespace {name} is missing at the target: its objects are in the default tablespace",
    "grant": "privileges of a missing role are left out",
    "not granted": "privileges that the job's role may not grant are left out",
    "left out": "{name} is left out: {line}",
}


@dataclass(frozen=True)
class MovedTable:
    """One table: rows, bytes and hash as read from the source."""

    table: str
    rows: int
    bytes: int
    hash: str


@dataclass(frozen=True)
class MovedDatabase:
    """Result of moving one database."""

    job: str
    source: str
    target: str
    at: str
    tables: tuple[MovedTable, ...]
    objects: dict[str, int]
    """Number of objects by kind, from pg_dump's archive."""
    index_bytes: int
    sequences: int
    large_objects: int
    statistics: str
    rows_checked: bool
    differs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    """Masked columns with their method, as the user wrote them."""
    phases: dict[str, float] = field(default_factory=dict)
    """Duration of each phase in the attempt that completed the job [s]."""
    cost: str | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(one.rows for one in self.tables)

    def to_json(self) -> JsonObject:
        """Return the result as JSON."""
        return {**asdict(self), "rows": self.rows, "bytes": sum(one.bytes for one in self.tables)}

    def sentences(self) -> list[str]:
        """Return the result as sentences."""
        size = sum(one.bytes for one in self.tables)
        lines = [
            f"{with_noun(self.rows, 'row')} in {with_noun(len(self.tables), 'table')}, {size / 1e6:,.1f} MB; "
            f"{numbers_of(self.objects)}; {with_noun(self.sequences, 'sequence')} set,"
            f" {with_noun(self.large_objects, 'large object')}.",
            f"All as of one instant: {self.at}.",
            f"Optimizer statistics: {self.statistics}.",
        ]
        if self.masks:
            lines.append(f"Masked: {'; '.join(self.masks)}. The key of the hashes is gone.")
        lines += [f"Left to you: {one}" for one in self.notes[:SHOWN]]
        if len(self.notes) > SHOWN:
            lines.append(f"Left to you: {len(self.notes) - SHOWN} more; --json shows all of them")
        lines += [f"DIFFERS: {one}" for one in self.differs[:SHOWN]]
        if len(self.differs) > SHOWN:
            lines.append(f"DIFFERS: {len(self.differs) - SHOWN} more; --json shows all of them")
        if not self.differs:
            checked = ["each table received as many rows as were read"]
            if self.rows_checked:
                checked.append("the target's tables and large objects, read again, hold exactly those rows")
            checked.append("pg_dump writes the same schema for both")
            lines.append(f"Proved: {'; '.join(checked)}.")
        if not self.rows_checked:
            lines.append("Not checked: the target's tables were not read again (--verify target does).")
        if self.phases:
            lines.append("Time: " + ", ".join(f"{name} {spent:.3g} s" for name, spent in self.phases.items()) + ".")
        return lines if self.cost is None else [*lines, self.cost]


def counts_of(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the number of objects by kind, the most frequent first."""
    names = {"CONSTRAINT": "key or unique constraint", "FK CONSTRAINT": "foreign key"}
    found = Counter(
        names.get(one.kind, one.kind.lower())
        for one in entries
        if one.kind not in NOT_COUNTED
        and one.kind not in ("ENCODING", "STDSTRINGS", "SEARCHPATH", "DATABASE")
        and one.kind not in ("DATABASE PROPERTIES", "MATERIALIZED VIEW DATA", "DEFAULT ACL", "ROW SECURITY")
    )
    return dict(found.most_common())


def numbers_of(objects: Mapping[str, int]) -> str:
    """Return the number of objects of each kind as text, such as `2 tables, 1 view`."""
    return (
        ", ".join(f"{count:,} {_plural_of(kind) if count != 1 else kind}" for kind, count in objects.items())
        or "nothing"
    )


def _plural_of(kind: str) -> str:
    if kind == "index":
        return "indexes"
    if kind == "statistics":
        return kind
    return f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2:-1] not in "aeiou" else f"{kind}s"


def notes_of(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return the notes of a job as sentences, one per cause with all objects that it concerns."""
    causes: dict[str, list[str]] = {}
    for kind, name, line in rows:
        if kind == "left out":
            causes.setdefault(NOTES[kind].format(name=name, line=line), [])
            continue
        about = line if kind in ("role", "owner", "tablespace") else name.rstrip(";")
        causes.setdefault(NOTES[kind].format(name=name), []).append(about)
    return [f"{cause}{_list_sentence(each)}" for cause, each in causes.items()]


def _list_sentence(each: Sequence[str]) -> str:
    if not each:
        return ""
    more = f" and {len(each) - 5} more" if len(each) > 5 else ""
    return f" ({', '.join(each[:5])}{more})"
