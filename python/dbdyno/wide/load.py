"""Load of a relational join into wide rows: parent columns static, children clustered; exact even after a kill.

1. The query's rows are moved to files by `dbdyno.move`: one snapshot, a ledger, a verification. They are ordered by the
   key, so that rows of a partition are adjacent.
2. All rows are checked against the table before the first row is written (`target.py`).
3. Rows are written by prepared statements, those of a partition in unlogged batches, with a limited number in flight.
   Each write has the timestamp of the job: writing it twice gives the same cell, so a retry, or a resumption after a
   kill, changes nothing. NULL is not written at all (it would be a tombstone).
4. `load.json` records the row up to which all rows are acknowledged. A resumed
   load continues from there, over the same files; if a node was restarted meanwhile, it continues from the last row
   that the node cannot have lost (`nodes.py`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.base.files import write_atomically
from dbdyno.base.json_types import TableRow
from dbdyno.base.live_servers import refuse_live
from dbdyno.evidence.files import read_json
from dbdyno.evidence.seal import is_own_plan, seal
from dbdyno.wide.address import Address, failure, open_session
from dbdyno.wide.catalog import PARTITION, WideTable, read_keyspace
from dbdyno.wide.decode import arrow
from dbdyno.wide.load_result import LoadResult
from dbdyno.wide.nodes import Marks, Starts, loss_window_s, node_generations, was_restarted
from dbdyno.wide.prepared_statements import PreparedInserts
from dbdyno.wide.static_columns import new_table
from dbdyno.wide.target import Shape, check_rows, check_table, create_cql, plain_numbers

STATE = "load.json"
ROWS = "rows"
VERSION = 1
BATCH_ROWS = 50
BATCH_BYTES = 4096
"""Largest size of a batch in bytes, below the size at which a node logs a warning."""
CHECKPOINT_ROWS = 20_000
TRIES = 6
RETRIED = {
    "OperationTimedOut",
    "WriteTimeout",
    "Unavailable",
    "OverloadedErrorMessage",
    "NoHostAvailable",
    "WriteFailure",
}


class LoadState:
    """Content of `load.json`: the sealed plan of the load, and the number of rows that are done."""

    def __init__(
        self, folder: Path, plan: Mapping[str, Any], done: int = 0, sure: int = 0, starts: Starts | None = None
    ) -> None:
        self.folder, self.plan, self.done = folder, plan, done
        self.sure, self.starts = sure, starts

    @classmethod
    def open(cls, folder: Path) -> LoadState:
        """Open the load of a folder.

        Raises:
            WideError: There is no valid state, or this user did not begin the load.
        """
        place = folder / STATE
        found = read_json(place)
        if not isinstance(found, dict) or found.get("version") != VERSION or not isinstance(found.get("done"), int):
            raise WideError("is not the state file of a load", where=str(place), next_step="start a new load")
        if not is_own_plan(found.get("plan"), found.get("seal")):
            raise WideError(
                "this load was not started by this user on this machine, so it is not executed",
                where=str(place),
                next_step="start a new load",
            )
        sure, starts = found.get("sure", 0), found.get("starts")
        return cls(
            folder,
            found["plan"],
            found["done"],
            sure if isinstance(sure, int) else 0,
            starts if isinstance(starts, dict) else None,
        )

    def save(self) -> None:
        """Write the state to disk atomically."""
        value = {
            "version": VERSION,
            "plan": self.plan,
            "seal": seal(self.plan),
            "done": self.done,
            "sure": self.sure,
            "starts": self.starts,
        }
        write_atomically(self.folder / STATE, json.dumps(value, indent=1).encode() + b"\n", durable=True)

    @property
    def shape(self) -> Shape:
        """Return the shape, which says how rows become wide rows."""
        given = self.plan["shape"]
        return Shape(given["table"], tuple(given["key"]), tuple(given["cluster"]), tuple(given["static"]))


def begin_load(folder: Path, address: Address, shape: Shape, *, create: bool, direct: bool = False) -> LoadState:
    """Create the state of a new load and write it to disk."""
    plan = {
        "target": address.safe,
        "shape": asdict(shape),
        "create": create,
        "direct": direct,
        "timestamp_us": time.time_ns() // 1000,
    }
    state = LoadState(folder, plan)
    state.save()
    return state


def files_of(folder: Path) -> list[Path]:
    """Return the files with the rows, in order."""
    return sorted((folder / ROWS).glob("part-*.parquet"))


def load(
    state: LoadState, address: Address, *, at_once: int = 32, say: Callable[[str], None] = lambda _: None
) -> LoadResult:
    """Write all rows that are not yet acknowledged; a load that fails can be resumed.

    Args:
        state: The load.
        address: The address of the target.
        at_once: Largest number of batches in flight.
        say: Called with each line for the user.

    Raises:
        WideError: The target is a different one, the rows do not fit, or a write failed.
        TargetError: The user's configuration names a host of the cluster as live.
    """
    for host in address.hosts:
        refuse_live(host, address.port, address.safe)
    if address.safe != state.plan["target"]:
        raise WideError(
            "is not the target of this load",
            where=address.safe,
            next_step=f"give the target of the load: {state.plan['target']}",
        )
    files = files_of(state.folder)
    schema = _schema(files)
    with open_session(address) as session:
        numbers = plain_numbers(files, schema, state.shape)
        table = _table(session, address, state, schema, numbers, say)
        rows = check_rows(files, table, schema)
        loaded = LoadResult(rows=rows, resumed=state.done)
        began = time.monotonic_ns()
        bound = PreparedInserts(session, table, schema.names, state.plan["timestamp_us"])
        if state.plan.get("direct") and (state.done < rows or not rows):
            from dbdyno.wide.sstable_load import write_files

            write_files(session, address, table, bound, _groups(files, table, 0), loaded, say)
            state.done = rows
            state.save()
            loaded.elapsed_ns = time.monotonic_ns() - began
            return loaded
        writer = Writer(session, address, bound, at_once, loaded)
        while not _write_rows(session, state, files, table, writer, loaded):
            say("a node was restarted: data that it may have lost is written again")
        state.done = rows
        state.save()
        loaded.elapsed_ns = time.monotonic_ns() - began
        return loaded


def _write_rows(
    session: Any, state: LoadState, files: Sequence[Path], table: WideTable, writer: Writer, loaded: LoadResult
) -> bool:
    """Write the remaining rows; return False if a node was restarted, so that acknowledged rows may be lost."""
    now = node_generations(session)
    if state.done and was_restarted(state.starts, now) is not False:
        loaded.repeated += state.done - state.sure
        state.done = state.sure
    state.starts = now
    marks = Marks(loss_window_s(session), state.sure)
    last = state.done
    for batch, at in _groups(files, table, state.done):
        writer.send(batch)
        last = at
        if last - state.done < CHECKPOINT_ROWS:
            continue
        writer.drain()
        if was_restarted(state.starts, node_generations(session)):
            return False
        marks.add(time.monotonic(), last)
        state.done, state.sure = last, marks.sure
        state.save()
    writer.drain()
    if was_restarted(state.starts, node_generations(session)):
        return False
    state.done = last
    return True


def _schema(files: Sequence[Path]) -> Any:
    """Return the common Arrow schema of the files; raise `WideError` if there are none."""
    if not files:
        raise WideError("the file of the rows is missing", where=ROWS, next_step="start a new load")
    pa = arrow()
    from pyarrow import parquet

    return pa.unify_schemas([parquet.read_schema(one) for one in files])


def _table(
    session: Any, address: Address, state: LoadState, schema: Any, numbers: AbstractSet[str], say: Callable[[str], None]
) -> WideTable:
    """Return the target table, created first if requested; raise `WideError` if it is missing or does not fit."""
    shape = state.shape
    try:
        found = read_keyspace(session, address.keyspace).get(shape.table)
    except WideError:
        found = None
    if found is not None:
        check_table(found, shape, schema, numbers)
        return found
    made, advice = new_table(files_of(state.folder), shape, schema, numbers)
    if not state.plan["create"]:
        step = f"add --create to make the table: {create_cql(made)}" + (f"\n  {advice}" if advice else "")
        raise WideError(f"there is no table {shape.table}", where=address.safe, next_step=step)
    if advice:
        say(advice)
    session.execute(create_cql(made))
    return made


def _groups(files: Sequence[Path], table: WideTable, skip: int) -> Iterator[tuple[list[TableRow], int]]:
    """Yield batches of rows of one partition, each with the number of its last row."""
    key = [one.name for one in table.columns_with_roles(PARTITION)]
    group: list[TableRow] = []
    at = size = 0
    last: Any = None
    for row in _rows(files):
        at += 1
        if at <= skip:
            continue
        mine = tuple(row[name] for name in key)
        weight = sum(len(one) if isinstance(one, str | bytes) else 16 for one in row.values())
        if group and (mine != last or len(group) >= BATCH_ROWS or size + weight > BATCH_BYTES):
            yield group, at - 1
            group, size = [], 0
        group.append(row)
        size += weight
        last = mine
    if group:
        yield group, at


def _rows(files: Sequence[Path]) -> Iterator[TableRow]:
    from pyarrow import parquet

    for file in files:
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=4096):
            yield from batch.to_pylist()


class Writer:
    """Writer of batches with a limited number in flight."""

    def __init__(
        self, session: Any, address: Address, bound: PreparedInserts, at_once: int, loaded: LoadResult
    ) -> None:
        self._session, self._where, self._loaded, self._most = session, address, loaded, at_once
        self._free = threading.Semaphore(at_once)
        self._failed: Exception | None = None
        self._bound = bound
        self._last: Any = None

    def send(self, group: Sequence[Mapping[str, Any]]) -> None:
        """Send a batch, waiting if too many are in flight.

        Raises:
            WideError: An earlier batch failed.
        """
        from cassandra.query import BatchStatement, BatchType

        key = self._bound.key(group[0])
        if key != self._last:
            self._last = key
            self._loaded.partitions += 1
        bound = [one for _, one in self._bound.bound_statements(group)]
        self._loaded.written += len(group)
        self._loaded.batches += 1
        statement: Any = bound[0] if bound else None
        if len(bound) > 1:
            statement = BatchStatement(BatchType.UNLOGGED)
            statement.is_idempotent = True
            for one in bound:
                statement.add(one)
        if statement is not None:
            self._send(statement)

    def _send(self, statement: Any, tries: int = 0) -> None:
        if tries == 0:
            self._free.acquire()
            if self._failed is not None:
                self._free.release()
                self._raise()
        future = self._session.execute_async(statement)
        future.add_callbacks(lambda _: self._free.release(), self._note_failure, errback_args=(statement, tries))

    def _note_failure(self, error: Exception, statement: Any, tries: int) -> None:
        if type(error).__name__ in RETRIED and tries + 1 < TRIES and self._failed is None:
            self._loaded.retries += 1
            pause = threading.Timer(0.1 * 2**tries, self._send, (statement, tries + 1))
            pause.daemon = True
            pause.start()
            return
        self._failed = self._failed or error
        self._free.release()

    def drain(self) -> None:
        """Wait until all batches are acknowledged.

        Raises:
            WideError: A batch failed.
        """
        for _ in range(self._most):
            self._free.acquire()
        self._free.release(self._most)
        if self._failed is not None:
            self._raise()

    def _raise(self) -> None:
        assert self._failed is not None
        made = failure(self._failed, self._where.safe)
        raise WideError(
            f"{made.message}; rows up to the last checkpoint are acknowledged",
            where=made.where,
            next_step="run `dbdyno move resume` when the node works again, to continue from the checkpoint",
        )
