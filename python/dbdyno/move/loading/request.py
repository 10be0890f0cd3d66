"""What the way in is asked for, how a column goes in, and what came of it, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from psycopg import sql

from dbdyno.move.engines.postgres.merging import Merged
from dbdyno.move.nouns import counted

TEXTS = ("text", "character varying", "bpchar", "name")
REJECTS_MOST = 100
PARTITIONS = "replace-partitions"
"""The mode that replaces those partitions, whole, that rows came for."""


@dataclass(frozen=True)
class Into:
    """What the user asked for."""

    table: str
    mode: str = "insert"
    key: Sequence[str] = ()
    create: bool = False
    """The table is made, from the types that the files note."""
    defer_indexes: bool = False
    """Indexes and constraints are dropped first and made again at the end, in the same transaction."""
    rejects: Path | None = None
    """Where rows go that the table does not take; None: one such row refuses the load."""
    rejects_most: int = REJECTS_MOST


@dataclass(frozen=True)
class Column:
    """A column of the files and of the table: what it is staged as, and what it becomes."""

    name: str
    staged: str
    becomes: str
    generated: bool = False
    """The server makes its values: they are staged, since the files have them, and go no further."""
    declared: str = ""
    """The table's type with its limits, as SQL writes it."""
    came: str = ""
    """The type that it had where it came from, where that is known."""

    @property
    def is_parsed(self) -> bool:
        """Whether its text is read by the input of another type."""
        return self.staged == "text" and self.becomes not in TEXTS

    def value(self, table: str) -> sql.Composable:
        """The value on its way from the staging table: assigned, or read from its text."""
        name = sql.SQL("{}.{}").format(sql.Identifier(table), sql.Identifier(self.name))
        return sql.SQL("{}::{}").format(name, sql.SQL(self.becomes)) if self.is_parsed else name


@dataclass(frozen=True)
class Rounded:
    """Values of a column that the table holds otherwise than they came."""

    column: str
    declared: str
    values: int
    came: str
    stands: str

    def sentence(self) -> str:
        """In words, with an example."""
        held = counted(self.values, "value")
        return f"column {self.column} ({self.declared}) does not hold {held} as they came: {self.came} -> {self.stands}"


@dataclass(frozen=True)
class Loaded:
    """What happened, each counted by itself."""

    files: int
    in_files: int
    mode: str
    changes: Merged
    rejected: int = 0
    rejects: Path | None = None
    rounded: tuple[Rounded, ...] = ()
    not_compared: tuple[str, ...] = ()
    """Columns whose values cannot be cast back to what they were in the files."""
    kept: tuple[str, ...] = ()
    """Indexes that --defer-indexes left where they were, with the reason."""
    made: tuple[str, ...] = ()
    """Those that were made again."""
    replaced: tuple[str, ...] = ()
    """Partitions that others have taken the place of."""
    created: bool = False
    records: bool = False
    """Whether the files are those of a finished job, and hold what its records say."""
    read_again: bool = False
    stands: bool = False
    """Whether what stands in the table was compared with what was staged."""
    source: str = "files"
    cost: str | None = None
    """What reading cost the source, in words."""

    def sentences(self) -> list[str]:
        """In words."""
        lines = [*self.happened(), f"Proved: {'; '.join(self._proved())}."]
        return lines if self.cost is None else [*lines, self.cost]

    def happened(self) -> list[str]:
        """What was done, and what is not as it came."""
        one = self.changes
        added = f"{counted(one.new, 'row')} added"
        done = {
            "insert": added,
            "replace": f"the table emptied and {added}",
            PARTITIONS: f"{counted(len(self.replaced), 'partition')} replaced and {added}, the others as they were",
            "update": f"{counted(one.changed, 'row')} changed, {one.same:,} the same, {one.absent:,} not there and left"
            " out",
            "merge": f"{added}, {one.changed:,} changed, {one.same:,} the same",
        }[self.mode]
        nulls = f", {one.null_keys:,} without a key left out" if one.null_keys else ""
        made = "the table made, " if self.created else ""
        lines = [f"{made}{done}{nulls}; in one transaction."]
        if self.rejects is not None:
            lines.append(
                f"{counted(self.rejected, 'row')} rejected: the reason, place and values of each are in {self.rejects}."
                if self.rejected
                else "No row was rejected."
            )
        if self.made:
            lines.append(f"Made again at the end: {', '.join(self.made)}.")
        if self.replaced:
            lines.append(f"Attached in place of the old ones: {', '.join(self.replaced)}.")
        lines += [f"Left in place: {one}." for one in self.kept]
        lines += [f"NOT the same: {one.sentence()}." for one in self.rounded]
        if self.not_compared:
            lines.append(f"Not compared: {', '.join(self.not_compared)}: their types are not cast back.")
        return lines

    def _proved(self) -> list[str]:
        places = counted(self.files, "file") if self.source == "files" else counted(self.files, "chunk")
        proved = [f"{counted(self.in_files, 'row')} in {places}, all of them accounted for"]
        if self.records:
            proved.append("the files hold what the job read that wrote them")
        if self.read_again:
            proved.append(f"the staged rows, read again from the server, were those of the {self.source}")
        if self.stands:
            proved.append("what stands in the table, read before the commit, is what came")
        return proved


@dataclass(frozen=True)
class LoadedAll:
    """Several tables that were published in one transaction, each by its name."""

    tables: tuple[tuple[str, Loaded], ...]

    @property
    def rejected(self) -> int:
        """Rows in all."""
        return sum(one.rejected for _, one in self.tables)

    @property
    def rounded(self) -> tuple[Rounded, ...]:
        """Of all tables."""
        return tuple(value for _, one in self.tables for value in one.rounded)

    def sentences(self) -> list[str]:
        """In words: each table, then what was proved of all."""
        first = self.tables[0][1]
        rows, files = (sum(getattr(one, name) for _, one in self.tables) for name in ("in_files", "files"))
        lines = [f"{name}: {line}" for name, one in self.tables for line in one.happened()]
        lines.append(f"{counted(len(self.tables), 'table')} in one transaction.")
        return [*lines, *replace(first, in_files=rows, files=files).sentences()[-1 - (first.cost is not None) :]]
