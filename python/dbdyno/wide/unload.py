"""Export of a Cassandra table to Parquet, one file and record per token range; a resumed export reads no range twice.

    FOLDER/part-00000.parquet ...     the rows as stored: static columns on every row, collections as JSON
    FOLDER/_dbdyno/unload.json        keyspace, table, ranges, and which ranges are finished, with their rows

Every token range is read once, so each partition is in exactly one file. Cassandra has no snapshot: rows written
meanwhile are included or not, row by row. The result says so, and the record holds the time of each range.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from dbdyno.base.errors import WideError
from dbdyno.base.files import make_folder, make_inner_folder, write_atomically
from dbdyno.evidence.files import read_json
from dbdyno.wide.address import Address, open_session
from dbdyno.wide.catalog import WideTable, read_keyspace
from dbdyno.wide.decode import Decoder
from dbdyno.wide.mapping import Key, MappedColumn, Relation
from dbdyno.wide.pushdown import Scan, TableNeeds, plan_scan
from dbdyno.wide.scan import ScanProgress, read, token_ranges

INNER, STATE = "_dbdyno", "unload.json"
VERSION = 1
WHOLE = "whole"


class RangeRecord(TypedDict):
    """Record of a finished token range: its rows, and when reading them began (UTC)."""

    rows: int
    at: str


class UnloadState(TypedDict):
    """Record of an export: what is exported, all token ranges, and which of them are finished."""

    version: int
    keyspace: str
    table: str
    columns: list[list[str]]
    ranges: list[list[int]]
    done: list[RangeRecord | None]


@dataclass(frozen=True)
class UnloadResult:
    """Result of an export."""

    rows: int
    files: int
    resumed: int
    began: str
    ended: str

    def sentences(self) -> Iterator[str]:
        """Yield the result as sentences."""
        yield f"{self.rows:,} rows in {self.files:,} files, one per range of tokens."
        if self.resumed:
            yield f"{self.resumed:,} ranges had been finished before."
        yield f"Proved: the ranges cover all tokens, each was read to its end, from {self.began} to {self.ended}."
        yield "NOT one instant: Cassandra has no snapshot. A row written during the read may be there or not."


def full_scan(table: WideTable) -> Scan:
    """Return the plan that reads all rows with all columns.

    A partition with only static columns is returned as a row without clustering columns.
    """
    columns = tuple(MappedColumn(one.name, one.name, one.kind.sql) for one in table.columns)
    relation = Relation(table.name, table.name, WHOLE, columns, Key("pk", tuple(one.name for one in table.key)))
    return plan_scan(relation, table, TableNeeds(tuple(one.name for one in columns)))


def unload(address: Address, name: str, folder: Path) -> UnloadResult:
    """Export a table to a folder, or resume an interrupted export.

    Raises:
        WideError: The table does not exist, the folder has other content, or reading failed.
    """
    with open_session(address) as session:
        tables = read_keyspace(session, address.keyspace)
        if name not in tables:
            raise WideError(
                f"there is no table {name}", where=address.safe, next_step=f"name one of: {', '.join(tables)}"
            )
        scan = full_scan(tables[name])
        state = _state(folder, address, name, scan, session)
        before = sum(one is not None for one in state["done"])
        for at, limits in enumerate(state["ranges"]):
            if state["done"][at] is None:
                state["done"][at] = _range(session, address, scan, tuple(limits), folder / f"part-{at:05}.parquet")
                _save(folder, state)
    done = [one for one in state["done"] if one is not None]
    return UnloadResult(sum(one["rows"] for one in done), len(done), before, done[0]["at"], done[-1]["at"])


def _state(folder: Path, address: Address, name: str, scan: Scan, session: Any) -> UnloadState:
    place = folder / INNER / STATE
    columns = [[one.name, one.kind.name] for one in scan.table.columns]
    if place.is_file():
        found = read_json(place)
        known = {"version": VERSION, "keyspace": address.keyspace, "table": name, "columns": columns}
        odd = next(
            (key for key, value in known.items() if not isinstance(found, dict) or found.get(key) != value), None
        )
        if odd is not None or not _is_whole(found):
            raise WideError(
                f"the folder contains another job, which differs in: {odd or 'ranges'}",
                where=str(place),
                next_step="name a new folder",
            )
        return cast("UnloadState", found)
    if folder.exists() and any(folder.iterdir()):
        raise WideError("is not an empty folder", where=str(folder), next_step="name a new folder")
    if not folder.exists():
        make_folder(folder)
    make_inner_folder(folder / INNER)
    limits = [list(one) for one in token_ranges(session, address.keyspace, name)]
    state: UnloadState = {
        "version": VERSION,
        "keyspace": address.keyspace,
        "table": name,
        "columns": columns,
        "ranges": limits,
        "done": [None] * len(limits),
    }
    _save(folder, state)
    return state


def _is_whole(found: Mapping[str, Any]) -> bool:
    limits, done = found.get("ranges"), found.get("done")
    if not isinstance(limits, list) or not isinstance(done, list) or len(limits) != len(done) or not limits:
        return False
    return all(isinstance(one, list) and len(one) == 2 and all(type(at) is int for at in one) for one in limits)


def _save(folder: Path, state: UnloadState) -> None:
    write_atomically(folder / INNER / STATE, json.dumps(state).encode() + b"\n", durable=True)


def _range(session: Any, address: Address, scan: Scan, limits: tuple[int, ...], path: Path) -> RangeRecord:
    """Write one token range to its file, completely or not at all, and return its record."""
    from pyarrow import parquet

    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    count, rows = ScanProgress(), 0
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with parquet.ParquetWriter(aside, Decoder(scan).schema, compression="zstd") as file:
            for batch in read(session, address.safe, [limits], scan, count):
                file.write_batch(batch)
                rows += batch.num_rows
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return {"rows": rows, "at": began}
