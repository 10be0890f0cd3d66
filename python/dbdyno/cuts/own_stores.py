"""Process that writes to one of dbdyno's own stores, or reads everything in it, for power cuts.

    python -m dbdyno.cuts.own_stores load runs FOLDER 1       -->   t 1 / a 1 / t 2 / ...
    python -m dbdyno.cuts.own_stores content runs FOLDER      -->   JSON of the content and the damage

A commit is what a writer reports as stored: a block of a run, a snapshot, a chunk of a move, a record of settings to be
restored. Its content follows from its number. Entries are written by dbdyno's own code, as in normal use.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import Error
from dbdyno.cuts.ledger import payload_of

if TYPE_CHECKING:
    from dbdyno.move.ledger.folder import Ledger

Row = tuple[int, str]
CHUNKS = 2_000
"""Number of chunks of a job: more than are ever recorded during the cuts of one database."""


class OwnStore(ABC):
    """A store of dbdyno in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def add(self, number: int) -> None:
        """Store an entry with this number; it is durable when this returns."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Yield number and content of each entry in the store.

        Raises:
            Error: Something that counts as stored cannot be read.
        """


class Runs(OwnStore):
    """Blocks of one run, each with a Parquet file of metrics."""

    def add(self, number: int) -> None:
        """Write the metrics file of a block, then the block's record."""
        from dbdyno import _core
        from dbdyno.bench.metrics import Metric, columns_of
        from dbdyno.evidence.run import Block, Run, new_run

        path = self.folder / "run"
        if not (path / "manifest.json").exists():
            new_run(self.folder, "cuts", {"kind": "experiment", "seed": 0}, name="run")
        block = Block(number, "measure", 0, 1, 1, [], marks=[payload_of(number)])
        metric = Metric("cuts", "host", "", "number", 1, number, "count", "gauge")
        _core.write_metrics(path / "metrics", block.name, columns_of([("", number, metric)]))
        Run.open(path).add_block(block)

    def rows(self) -> Iterator[Row]:
        """Yield the blocks; the content of a block whose metrics file is missing or damaged is empty."""
        from dbdyno.evidence.run import Run

        path = self.folder / "run"
        if not (path / "manifest.json").exists():
            return
        for block in Run.open(path).blocks():
            found = _numbers(path / "metrics" / f"{block.name}.parquet")
            yield block.index, block.marks[0] if found == [block.index] else ""


class Snapshots(OwnStore):
    """Snapshots of one target."""

    def add(self, number: int) -> None:
        """Store a snapshot with a view of one row."""
        from dbdyno.snapshot.engines.view import Column, View
        from dbdyno.snapshot.store.folder import Store

        columns = (Column("value", "gauge", "count", "BIGINT"),)
        view = View("numbers", "server", columns, [(number,)])
        facts: dict[str, object] = {"number": number}
        store = Store(self.folder / "snaps")
        store.add([view], engine="postgres", target="cuts", at_ns=number, facts=facts, note=payload_of(number))

    def rows(self) -> Iterator[Row]:
        """Yield the snapshots with a manifest; the content of a snapshot whose view is missing or damaged is empty."""
        from dbdyno.snapshot.store.folder import Store

        store = Store(self.folder / "snaps")
        for snapshot in store:
            number = int(snapshot.facts["number"])
            file = snapshot.file("numbers")
            yield number, snapshot.note if file is not None and _numbers(file) == [number] else ""


class Moves(OwnStore):
    """Finished chunks in the ledger of one job."""

    def add(self, number: int) -> None:
        """Record a chunk, creating the job first if there is none."""
        row = {"number": number, "rows": number, "file_bytes": 0, "hash": payload_of(number)[:32], "file": ""}
        self._ledger(number).record({**row, "snapshot": 0})

    def _ledger(self, first: int) -> Ledger:
        from dbdyno.move.ledger.folder import Ledger

        folder = self.folder / "job"
        if (folder / "_dbdyno" / "manifest.json").exists():
            return Ledger.open(folder)
        numbers = range(first, first + CHUNKS)
        chunks = [{"number": at, "table": 0, "relation": 0, "bytes": 1, "file": ""} for at in numbers]
        plan = {"id": "cuts", "source": "cuts", "tables": [{"schema": "s", "name": "t"}], "chunks": chunks}
        made = Ledger.create(folder, {"status": "running", "plan": plan, "snapshots": [{"id": "1", "at": "now"}]})
        made.save()
        return made

    def rows(self) -> Iterator[Row]:
        """Yield the recorded chunks."""
        from dbdyno.move.ledger.folder import Ledger

        folder = self.folder / "job"
        if not (folder / "_dbdyno" / "manifest.json").exists():
            return
        for number, record in Ledger.open(folder).records().items():
            whole = record["hash"] == payload_of(number)[:32] and record["rows"] == number
            yield number, payload_of(number) if whole else ""


class Settings(OwnStore):
    """Records of settings to be restored, which the undo of a server's settings needs."""

    def add(self, number: int) -> None:
        """Write the record of a setting, as is done before a setting is changed."""
        from dbdyno.bench.engine.unrestored_settings import ChangedSetting, new_record, write_new

        os.environ["DBDYNO_STATE"] = str(self.folder / "state")
        write_new(new_record(str(number), payload_of(number), {"work_mem": ChangedSetting("4MB", None, ("8MB",))}))

    def rows(self) -> Iterator[Row]:
        """Yield the records."""
        from dbdyno.bench.engine.unrestored_settings import all_records

        os.environ["DBDYNO_STATE"] = str(self.folder / "state")
        for record in all_records().values():
            yield int(record.target), record.server


KINDS: dict[str, type[OwnStore]] = {"runs": Runs, "snapshots": Snapshots, "moves": Moves, "settings": Settings}


def _numbers(file: Path) -> list[int]:
    """Return the numbers in a Parquet file that was written here; empty if it cannot be read."""
    import duckdb

    try:
        return [int(row[0]) for row in duckdb.execute("select value from read_parquet($1)", [str(file)]).fetchall()]
    except duckdb.Error:
        return []


def load(store: OwnStore, number: int) -> None:
    """Store entries one after the other until the folder fails."""
    while True:
        for word in ("t", "a"):
            sys.stdout.write(f"{word} {number}\n")
            sys.stdout.flush()
            if word == "t":
                store.add(number)
        number += 1


def content(store: OwnStore) -> dict[str, object]:
    """Return everything in a store; unreadable parts are returned as corrupt."""
    rows: list[tuple[int, int, str]] = []
    corrupt = ""
    try:
        rows += [(number, 0, payload) for number, payload in store.rows()]
    except Error as error:
        corrupt = str(error).splitlines()[0]
    return {"rows": rows, "counts": [(0, len(rows))] if rows else [], "corrupt": corrupt}


def main(work: str, kind: str, folder: str, first: str = "1") -> None:
    """Load a store, or print its content."""
    store = KINDS[kind](Path(folder))
    if work == "load":
        load(store, int(first))
    json.dump(content(store), sys.stdout)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Error, OSError) as failed:
        sys.exit(str(failed))
