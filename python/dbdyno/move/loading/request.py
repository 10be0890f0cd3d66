"""Request for a load, the treatment of each column, and the result in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from psycopg import sql

from dbdyno.move.engines.postgres.merging import MergeCounts
from dbdyno.move.nouns import with_noun

TEXTS = ("text", "character varying", "bpchar", "name")
REJECTS_MOST = 100
PARTITIONS = "replace-partitions"
"""Mode that replaces all rows of each partition that has new rows."""


@dataclass(frozen=True)
class LoadRequest:
    """Target table, mode and options that the user asked for."""

    table: str
    mode: str = "insert"
    key: Sequence[str] = ()
    create: bool = False
    """True creates the table from the types that the files record."""
    defer_indexes: bool = False
    """True drops indexes and constraints first and creates them again at the end, in the same transaction."""
    rejects: Path | None = None
    """File for rows that the table refuses; if None, one such row makes the load fail."""
    rejects_most: int = REJECTS_MOST


@dataclass(frozen=True)
class Column:
    """Column of the files and of the table: its staging type and its final type."""

    name: str
    staged: str
    becomes: str
    generated: bool = False
    """True if the server generates its values: they are staged, because the files have them, but not written."""
    declared: str = ""
    """The table's type with its length or precision, as SQL writes it."""
    came: str = ""
    """Type at the source; empty if unknown."""

    @property
    def is_parsed(self) -> bool:
        """Return True if the staged text is converted by another type's input function."""
        return self.staged == "text" and self.becomes not in TEXTS

    def value(self, table: str) -> sql.Composable:
        """Return the SQL expression of the value, read from the staging table and converted from text if needed."""
        name = sql.SQL("{}.{}").format(sql.Identifier(table), sql.Identifier(self.name))
        return sql.SQL("{}::{}").format(name, sql.SQL(self.becomes)) if self.is_parsed else name


@dataclass(frozen=True)
class RoundedColumn:
    """Number of a column's values that the table stores differently from the loaded ones, with an example."""

    column: str
    declared: str
    values: int
    came: str
    stands: str

    def sentence(self) -> str:
        """Return a sentence that says how many values of the column are stored differently, with an example."""
        held = with_noun(self.values, "value")
        return f"column {self.column} ({self.declared}) does not store {held} exactly: {self.came} -> {self.stands}"


@dataclass(frozen=True)
class LoadResult:
    """Result of a load, with counts."""

    files: int
    in_files: int
    mode: str
    changes: MergeCounts
    rejected: int = 0
    rejects: Path | None = None
    rounded: tuple[RoundedColumn, ...] = ()
    not_compared: tuple[str, ...] = ()
    """Columns whose values cannot be cast back to their type in the files."""
    kept: tuple[str, ...] = ()
    """Indexes that --defer-indexes did not drop, with the reason."""
    made: tuple[str, ...] = ()
    """Indexes and constraints that were created again."""
    replaced: tuple[str, ...] = ()
    """Partitions that were replaced."""
    created: bool = False
    records: bool = False
    """True if the files are those of a finished job and hold what it recorded."""
    read_again: bool = False
    stands: bool = False
    """True if the table was compared with the staged rows."""
    source: str = "files"
    cost: str | None = None
    """Cost that reading caused on the source, in words."""

    def sentences(self) -> list[str]:
        """Return the result as sentences."""
        lines = [*self.outcome_sentences(), f"Proved: {'; '.join(self._proof_sentences())}."]
        return lines if self.cost is None else [*lines, self.cost]

    def outcome_sentences(self) -> list[str]:
        """Return sentences about what was done, and about what is not stored as it was loaded."""
        one = self.changes
        added = f"{with_noun(one.new, 'row')} added"
        done = {
            "insert": added,
            "replace": f"the table emptied and {added}",
            PARTITIONS: f"{with_noun(len(self.replaced), 'partition')} replaced and {added}, the others unchanged",
            "update": f"{with_noun(one.changed, 'row')} changed, {one.same:,} the same, {one.absent:,} missing and"
            " left out",
            "merge": f"{added}, {one.changed:,} changed, {one.same:,} the same",
        }[self.mode]
        nulls = f", {one.null_keys:,} without a key left out" if one.null_keys else ""
        made = "the table made, " if self.created else ""
        lines = [f"{made}{done}{nulls}; in one transaction."]
        if self.rejects is not None:
            lines.append(
                f"{with_noun(self.rejected, 'row')} rejected: the reason, place and values of each are in"
                f" {self.rejects}."
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

    def _proof_sentences(self) -> list[str]:
        places = with_noun(self.files, "file") if self.source == "files" else with_noun(self.files, "chunk")
        proved = [f"{with_noun(self.in_files, 'row')} in {places}, all of them accounted for"]
        if self.records:
            proved.append("the files contain what the job that wrote them had read")
        if self.read_again:
            proved.append(f"the staged rows, read again from the server, were those of the {self.source}")
        if self.stands:
            proved.append("the table, read before the commit, contains exactly what was sent")
        return proved


@dataclass(frozen=True)
class MultiTableResult:
    """Result of loading several tables in one transaction, each with its name."""

    tables: tuple[tuple[str, LoadResult], ...]

    @property
    def rejected(self) -> int:
        """Return the number of rejected rows of all tables."""
        return sum(one.rejected for _, one in self.tables)

    @property
    def rounded(self) -> tuple[RoundedColumn, ...]:
        """Return the columns of all tables in which values were rounded."""
        return tuple(value for _, one in self.tables for value in one.rounded)

    def sentences(self) -> list[str]:
        """Return the result as sentences: each table, then what was verified for all."""
        first = self.tables[0][1]
        rows, files = (sum(getattr(one, name) for _, one in self.tables) for name in ("in_files", "files"))
        lines = [f"{name}: {line}" for name, one in self.tables for line in one.outcome_sentences()]
        lines.append(f"{with_noun(len(self.tables), 'table')} in one transaction.")
        return [*lines, *replace(first, in_files=rows, files=files).sentences()[-1 - (first.cost is not None) :]]
