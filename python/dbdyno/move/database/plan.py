"""Preview of moving a database: tables and indexes with their sizes, sequences, all other objects; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database import finish_steps, schema
from dbdyno.move.database.inventory import Index, Sequence, facts_of, take_inventory
from dbdyno.move.database.masks import Mask, apply_masks
from dbdyno.move.database.result import counts_of, numbers_of
from dbdyno.move.database.target import roles_of
from dbdyno.move.nouns import with_noun


@dataclass(frozen=True)
class PlannedMove:
    """Everything that would be moved; `tables` contains the size of each table [bytes] by name."""

    source: str
    target: str
    programs: str
    tables: dict[str, int]
    indexes: tuple[Index, ...]
    sequences: tuple[Sequence, ...]
    large_objects: int
    objects: dict[str, int]
    lacking_roles: tuple[str, ...]
    carries_statistics: bool
    masks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Return the plan as JSON."""
        return {**asdict(self), "tables": [{"table": name, "bytes": size} for name, size in self.tables.items()]}

    def sentences(self) -> list[str]:
        """Return the preview as lines of text."""
        size = sum(self.tables.values())
        built = sum(one.bytes for one in self.indexes)
        lines = [f"{self.source} -> {self.target}, by pg_dump {self.programs}"]
        lines.append(f"{with_noun(len(self.tables), 'table')}, {size / 1e6:,.1f} MB:")
        lines += [f"  {name}: {each / 1e6:,.1f} MB" for name, each in sorted(self.tables.items(), key=lambda t: -t[1])]
        lines.append(f"{len(self.indexes):,} indexes, {built / 1e6:,.1f} MB, the largest first:")
        lines += [
            f"  {one.schema}.{one.name} on {one.table}: {one.bytes / 1e6:,.1f} MB"
            for one in sorted(self.indexes, key=lambda index: -index.bytes)
        ]
        lines.append(f"{with_noun(len(self.sequences), 'sequence')}:")
        lines += [f"  {one.schema}.{one.name}: {one.value}" for one in self.sequences]
        lines.append(f"{with_noun(self.large_objects, 'large object')}")
        lines.append(f"In all: {numbers_of(self.objects)}")
        carried = "carried" if self.carries_statistics else f"analysed in {len(finish_steps.STAGES)} stages"
        lines.append(f"Optimizer statistics: {carried}")
        lines += [f"Masked: {one}" for one in self.masks]
        lines += [f"Note: {one}" for one in self.notes]
        if self.lacking_roles:
            lines.append(f"Roles that lack at the target: {', '.join(self.lacking_roles)}")
        return lines


def plan_move(
    source: Postgres,
    conn: psycopg.Connection[Any],
    programs: Binaries,
    folder: Path,
    job: str,
    masks: Iterable[Mask] = (),
) -> PlannedMove:
    """Return what would be moved; only the source is read, and nothing is written.

    Args:
        source: The server and its database.
        conn: A session at the target.
        programs: pg_dump.
        folder: A folder for pg_dump's archive.
        job: An id for the sessions' names.
        masks: Columns whose values are masked while they are moved.

    Raises:
        MoveError: The source cannot be read, or a column cannot be masked.
    """
    snapshot, inventory = take_inventory(source, job)
    with snapshot:
        inventory = apply_masks(snapshot, inventory, tuple(masks))
        entries = schema.dump_schema(source, programs, folder / "schema.dump", job, snapshot.id)
    owners = {one.owner for one in entries if one.owner} | set(inventory.roles)
    info = conn.info
    return PlannedMove(
        source=source.safe_dsn,
        target=f"host={info.host} port={info.port} dbname={info.dbname}",
        programs=programs.version,
        tables={f"{one.schema}.{one.name}": one.relations[0].bytes for one in inventory.tables},
        indexes=inventory.indexes,
        sequences=inventory.sequences,
        large_objects=inventory.facts.large_objects,
        objects=counts_of(entries),
        lacking_roles=tuple(sorted(owners - roles_of(conn))),
        carries_statistics=finish_steps.can_transfer_statistics(programs, facts_of(conn).major) and not masks,
        masks=inventory.masks,
        notes=inventory.mask_notes,
    )
