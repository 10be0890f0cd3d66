"""SQL queries over mapped tables: Cassandra evaluates what it can, and DuckDB the rest, on the rows that arrive.

A query that reads one table once is answered while rows arrive. A query over several tables, or one that reads a table
twice, first stores each scan in DuckDB (in memory, spilling to disk), so that nothing is read twice and joins know the
sizes. DuckDB applies every condition again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dbdyno.base.errors import EvidenceError, WideError
from dbdyno.evidence.memory import memory_connection
from dbdyno.evidence.query_limits import READ_ONLY, require_select, restrict
from dbdyno.wide.address import Address, open_session
from dbdyno.wide.catalog import read_keyspace
from dbdyno.wide.decode import Decoder, arrow
from dbdyno.wide.mapping import WideMap, check
from dbdyno.wide.pushdown import Scan, explain_pushdown, plan_scan
from dbdyno.wide.query_analysis import ScanQuery, analyse_query
from dbdyno.wide.scan import Meter, ScanProgress, read, statement_parameters

if TYPE_CHECKING:
    import duckdb

FETCH = 4096
VERSION = "select schema_version from system.local"


@dataclass
class TableScan:
    """Scan of a table, and what it has read."""

    scan: Scan
    read: ScanProgress = field(default_factory=ScanProgress)


class Answer:
    """Context manager for a query's answer, which reads rows as the caller consumes them; its end stops all reading.

    Raises:
        WideError: The query or the map is not valid, or the cluster reports an error.
    """

    def __init__(self, address: Address, wide_map: WideMap, text: str, file: str, *, filtering: bool = False) -> None:
        self._where, self._meter = address, Meter()
        self._session_cm = open_session(address, self._meter.handler())
        self._session = self._session_cm.__enter__()
        try:
            self.map = check(wide_map, read_keyspace(self._session, address.keyspace), file)
            self._version = self._session.execute(VERSION).one()[0]
            self.question = analyse_query(text, self.map)
            self.scans = scan_plans(self.question, self.map, filtering)
            self.elapsed_ns = 0
            self._error: Exception | None = None
            self.rows_out = 0
            self._duck = memory_connection()
        except BaseException as error:
            self._session_cm.__exit__(type(error), error, error.__traceback__)
            raise

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, *ending: Any) -> None:
        self._duck.close()
        self._session_cm.__exit__(*ending)

    @property
    def bytes(self) -> int:
        """Return the bytes received from the cluster, including its catalog."""
        return self._meter.bytes

    def _begin(self) -> None:
        began = time.monotonic_ns()
        restrict(self._duck)
        for name, one in self.scans.items():
            reader = self._reader(one)
            if self.question.once:
                self._duck.register(name, reader)
            else:
                self._stage(name, reader)
        if not self.question.once:
            self._check_unchanged()
        self._result = self._run()
        self.names = [one[0] for one in self._result.description or []]
        self._began = began

    def _run(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            return self._duck.execute(require_select(self._duck, self.question.sql))
        except EvidenceError as error:
            raise WideError(
                error.message.removesuffix(f": {READ_ONLY}"),
                where="the query",
                next_step="give a query, or a plain INSERT, UPDATE or DELETE of one table without other clauses",
            ) from None
        except duckdb.Error as error:
            raise self._error_of(error) from None

    def _error_of(self, error: Exception) -> Exception:
        """Return the error of the scan that failed, or else DuckDB's own error as a `WideError`."""
        if self._error is not None:
            return self._error
        text = str(error).splitlines()[0]
        for name, one in self.scans.items():
            text = text.replace(name, one.scan.relation.name)
        return WideError(text, where="the query", next_step="correct the SQL, which is in DuckDB's dialect")

    def _stage(self, name: str, reader: Any) -> None:
        import duckdb

        coming = f"{name}_coming"
        self._duck.register(coming, reader)
        try:
            self._duck.execute(f"create table {name} as select * from {coming}")  # noqa: S608 (our own names)
        except duckdb.Error as error:
            raise self._error_of(error) from None
        self._duck.unregister(coming)

    def _reader(self, scan: TableScan) -> Any:
        asked = statement_parameters(self._session, self._where.keyspace, scan.scan)
        schema = Decoder(scan.scan).schema
        return arrow().RecordBatchReader.from_batches(schema, self._batches(scan, asked))

    def _batches(self, scan: TableScan, asked: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        before = self._meter.bytes
        try:
            for batch in read(self._session, self._where.safe, asked, scan.scan, scan.read):
                scan.read.bytes = self._meter.bytes - before
                yield batch
        except Exception as error:
            self._error = error
            raise

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the answer as they arrive.

        Raises:
            WideError: A scan failed, or a table was altered meanwhile.
        """
        import duckdb

        while True:
            try:
                rows = self._result.fetchmany(FETCH)
            except duckdb.Error as error:
                raise self._error_of(error) from None
            self.rows_out += len(rows)
            yield from rows
            if not rows:
                break
        self._check_unchanged()
        self.elapsed_ns = time.monotonic_ns() - self._began

    def _check_unchanged(self) -> None:
        check_unchanged(self._session, self._where, self._version, [one.scan for one in self.scans.values()])

    def explain(self, *, asked: bool = True) -> Iterator[str]:
        """Yield lines that say what was pushed down, read, and filtered here; without figures if `asked` is False."""
        for one in self.scans.values():
            yield from explain_pushdown(one.scan)
            if asked:
                was = one.read
                statements = count_with_noun(was.statements, "statement")
                yield f"  read:          {count_with_noun(was.rows, 'row')} in {statements}, {was.bytes:,} bytes"
        if asked:
            yield f"answer: {count_with_noun(self.rows_out, 'row')} in {self.elapsed_ns / 1e9:.3g} s"


def count_with_noun(number: int, word: str) -> str:
    """Return the number with its noun, in the plural unless it is 1."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def check_unchanged(session: Any, address: Address, version: Any, scans: Sequence[Scan]) -> None:
    """Check that the scanned tables still have the columns they had when the query began.

    Args:
        session: The driver session.
        address: The address.
        version: The schema version when the query began.
        scans: The scans of the query.

    Raises:
        WideError: A table was altered.
    """
    if session.execute(VERSION).one()[0] == version:
        return
    now = read_keyspace(session, address.keyspace)
    for one in scans:
        if now.get(one.table.name) != one.table:
            raise WideError(
                f"table {one.table.name} was altered while it was read",
                where=address.safe,
                next_step="read its map again with `dbdyno wide map`, then run the query again",
            )


def scan_plans(query: ScanQuery, wide_map: WideMap, filtering: bool) -> dict[str, TableScan]:
    """Return the plan of each scan of a query, by the scan's name; `filtering` permits ALLOW FILTERING."""
    return {
        name: TableScan(plan_scan(relation, wide_map.tables[relation.of], wanted, filtering=filtering))
        for name, (relation, wanted) in query.scans.items()
    }
