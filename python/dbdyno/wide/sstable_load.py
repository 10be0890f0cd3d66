"""Load by SSTables that are written locally and streamed to the nodes that own the rows.

1. Rows are bound as for ordinary statements, so each value is encoded by the driver; the Java program `SSTables.java`
   writes them as SSTables (Cassandra's CQLSSTableWriter) in the format that the node reads according to its settings.
2. Cassandra's bulk loader streams them through the nodes' storage port.
3. A node that cannot read the format accepts the files silently and has no rows. Therefore the load fails if it
wrote no SSTable or no row, and partitions from all parts of the load are queried afterwards.

All rows carry the job's timestamp: an interrupted load can simply be run again.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import WideError
from dbdyno.base.json_types import TableRow
from dbdyno.base.processes import child_environment, find_program
from dbdyno.bench.cassandra.java import jar_folder, module_options
from dbdyno.wide.catalog import PARTITION, WideTable
from dbdyno.wide.prepared_statements import CHILD, PARENT, PreparedInserts
from dbdyno.wide.pushdown import quote_cql

if TYPE_CHECKING:
    from dbdyno.wide.address import Address
    from dbdyno.wide.load_result import LoadResult

HERE = Path(__file__).resolve().parent
SAMPLE_PARTITIONS = 64
"""Number of partitions, from all parts of the load, that are queried afterwards."""
PROGRESS_ROWS = 200_000
LOADER_S = 24 * 3600
_NULL, _UNSET = struct.pack(">i", -1), struct.pack(">i", -2)
_LENGTH = struct.Struct(">i")
_YAML = """cluster_name: dbdyno
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
endpoint_snitch: SimpleSnitch
storage_compatibility_mode: {mode}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1"}}]
data_file_directories: ["{folder}/data"]
commitlog_directory: "{folder}/log"
hints_directory: "{folder}/hints"
saved_caches_directory: "{folder}/caches"
cdc_raw_directory: "{folder}/cdc"
"""
_LOGBACK = """<configuration><appender name="E" class="ch.qos.logback.core.ConsoleAppender"><target>System.err</target>
<encoder><pattern>%level %msg%n</pattern></encoder></appender>
<root level="ERROR"><appender-ref ref="E"/></root></configuration>
"""


def write_files(
    session: Any,
    address: Address,
    table: WideTable,
    bound: PreparedInserts,
    groups: Iterable[tuple[list[TableRow], int]],
    loaded: LoadResult,
    say: Callable[[str], None],
) -> None:
    """Write the rows as SSTables and stream them to the nodes; a failed load can simply be run again.

    Args:
        session: The driver session.
        address: The address.
        table: The target table.
        bound: The statements that encode rows.
        groups: Rows of one partition each, with the number of rows up to the last of them.
        loaded: Counters of the load, which are updated.
        say: Called with each line for the user.

    Raises:
        WideError: A password would be needed, or no SSTables were written, streamed or found afterwards.
    """
    if address.password:
        raise WideError(
            "the bulk loader would show the password among its arguments, where every user of this host can read it",
            where="--direct",
            next_step="load without --direct, or as a user without a password",
        )
    with tempfile.TemporaryDirectory(prefix="dbdyno-sstables-") as made, contextlib.ExitStack() as held:
        program = _Program(session, address, table, bound, Path(made))
        held.callback(program.kill)
        sample = _write(program, bound, groups, loaded, say)
        rows = program.rows()
        loaded.tables = len(list(program.place.glob("*-Data.db")))
        if not rows or not loaded.tables:
            raise WideError(
                "no SSTable was written, because there was no row to write",
                where=address.safe,
                next_step="check the query, which may return no rows",
            )
        say(f"{loaded.tables:,} SSTables written; streaming them to the nodes")
        began = time.monotonic_ns()
        _stream(session, address, program)
        loaded.streamed_ns = time.monotonic_ns() - began
        loaded.checked = _count_samples(session, address, table, sample)


def _write(
    program: _Program,
    bound: PreparedInserts,
    groups: Iterable[tuple[list[TableRow], int]],
    loaded: LoadResult,
    say: Callable[[str], None],
) -> list[tuple[Any, ...]]:
    """Send the rows to the program, and return the keys of partitions from all parts of the load."""
    last: Any = None
    kept: list[tuple[Any, ...]] = []
    every = 1
    for group, at in groups:
        key = bound.key(group[0])
        if key != last:
            last = key
            if loaded.partitions % every == 0:
                kept.append(key)
                if len(kept) > SAMPLE_PARTITIONS:  # keep every second one, and from here on add half as many
                    kept, every = kept[::2], 2 * every
            loaded.partitions += 1
        program.feed(b"".join(_frame(which, one.values) for which, one in bound.bound_statements(group)))
        if at // PROGRESS_ROWS != loaded.written // PROGRESS_ROWS:
            say(f"{at:,} rows written as SSTables")
        loaded.written = at
    return kept


def _frame(which: int, values: Sequence[Any]) -> bytes:
    """Return a row in the program's input format, with each value as the driver encoded it."""
    parts = [bytes((which,))]
    for value in values:
        if value is None:
            parts.append(_NULL)
        elif isinstance(value, bytes | bytearray):
            parts.append(_LENGTH.pack(len(value)) + value)
        else:
            parts.append(_UNSET)
    return b"".join(parts)


class _Program:
    """The Java program that writes SSTables."""

    def __init__(self, session: Any, address: Address, table: WideTable, bound: PreparedInserts, folder: Path) -> None:
        self.where, self.folder = address, folder
        self.place = folder / "out" / address.keyspace / table.name
        self.place.mkdir(parents=True)
        conf = folder / "conf"
        conf.mkdir()
        (conf / "cassandra.yaml").write_text(_YAML.format(mode=_mode(session), folder=folder))
        (conf / "logback.xml").write_text(_LOGBACK)
        session.cluster.refresh_schema_metadata()
        keyspace = session.cluster.metadata.keyspaces[address.keyspace]
        create = keyspace.tables[table.name].as_cql_query()
        types = [one.as_cql_query() for one in keyspace.user_types.values()]
        inserts = [self._qualify(bound.cql.get(which, ""), table) for which in (PARENT, CHILD)]
        self.said = (folder / "said").open("w+b")
        command = [*self.java(), str(HERE / "SSTables.java"), str(self.place), create, *inserts, *types]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env=child_environment(),
            cwd=folder,
            start_new_session=True,
        )

    def _qualify(self, insert: str, table: WideTable) -> str:
        """Return the INSERT statement with the table's name qualified by the keyspace."""
        name = quote_cql(table.name)
        return insert.replace(f"insert into {name} ", f"insert into {quote_cql(self.where.keyspace)}.{name} ", 1)

    def java(self) -> list[str]:
        """Return the command that starts a Java program of Cassandra, without its main class."""
        conf = self.folder / "conf"
        options = ["-Xmx512M", "-XX:+UseSerialGC", f"-Dcassandra.config=file:{conf}/cassandra.yaml"]
        options += [f"-Dcassandra.storagedir={self.folder}/data", f"-Djava.io.tmpdir={self.folder}"]
        options += [f"-Dlogback.configurationFile={conf}/logback.xml", f"-Djna.tmpdir={self.folder}"]
        return [str(find_program("java")), *module_options(), *options, "-cp", f"{conf}:{jar_folder()}/*"]

    def feed(self, data: bytes) -> None:
        """Send encoded rows to the program.

        Raises:
            WideError: The program has ended.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
        except BrokenPipeError:
            raise self._failure() from None

    def rows(self) -> int:
        """Wait for the program to end, and return the number of rows it wrote.

        Raises:
            WideError: The program failed.
        """
        try:
            answer = self.process.communicate()[0]
        except BrokenPipeError:
            raise self._failure() from None
        if self.process.returncode != 0 or not answer.startswith(b"rows "):
            raise self._failure()
        return int(answer.split()[1])

    def kill(self) -> None:
        """Kill the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.said.close()

    def _failure(self) -> WideError:
        self.process.wait()
        return WideError(
            f"no SSTables were written: {_last_error(self.said)}",
            where=self.where.safe,
            next_step="load without --direct",
        )


def _last_error(said: Any) -> str:
    """Return the last error message of a Java program: its last exception, else its last line."""
    said.flush()
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    found = [line for line in lines if "Exception" in line or line.startswith("ERROR")]
    return str((found or lines or ["it said nothing"])[-1])[:400]


def _mode(session: Any) -> str:
    """Return the SSTable format that the node reads, from its `storage_compatibility_mode`."""
    row = session.execute("select value from system_views.settings where name = 'storage_compatibility_mode'").one()
    return str(row[0]) if row and row[0] else "CASSANDRA_4"


def _stream(session: Any, address: Address, program: _Program) -> None:
    """Run Cassandra's bulk loader; raise `WideError` with its message if it fails."""
    row = session.execute("select listen_port from system.local").one()
    command = [*program.java(), "org.apache.cassandra.tools.BulkLoader", "-d", ",".join(address.hosts)]
    command += ["-p", str(address.port), "-sp", str(row[0] if row else 7000), "--no-progress"]
    with (program.folder / "streamed").open("w+b") as said:
        done = subprocess.run(
            [*command, str(program.place)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=child_environment(),
            cwd=program.folder,
            check=False,
            timeout=LOADER_S,
        )
        if done.returncode != 0:
            raise WideError(
                f"the nodes refused the SSTables: {_last_error(said)}",
                where=address.safe,
                next_step="check the logs of the nodes, or load without --direct",
            )


def _count_samples(session: Any, address: Address, table: WideTable, sample: Sequence[tuple[Any, ...]]) -> int:
    """Query sample partitions and return their number; raise `WideError` if one is missing."""
    names = " and ".join(f"{quote_cql(one.name)} = ?" for one in table.columns_with_roles(PARTITION))
    first = quote_cql(table.columns_with_roles(PARTITION)[0].name)
    asked = session.prepare(f"select {first} from {quote_cql(table.name)} where {names} limit 1")  # noqa: S608
    for key in sample:
        if session.execute(asked.bind(list(key))).one() is None:
            raise WideError(
                f"the nodes accepted the files, but partition {key!r:.80} is missing",
                where=address.safe,
                next_step="compare storage_compatibility_mode of the nodes, or load without --direct",
            )
    return len(sample)
