"""SQL queries over mapped tables on Spark: the map's tables are views over the spark-cassandra-connector's tables.

    driver      analyses the query as `answer.py` does, and creates a view for each occurrence of a table
    executors   read token ranges through the connector, in parallel, near the nodes that hold them

The connector pushes conditions down by its own rules, and adds ALLOW FILTERING to all its statements. Therefore it may
push only where the rules of `pushdown.py` would, too: for a whole partition key, or an index. Its jars are those of
`make setup-wide`, or of the folder in DBDYNO_SPARK_CONNECTOR. A password is set in the running session, because
everybody on the host can read the command line of the JVM.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import WideError
from dbdyno.base.processes import find_program
from dbdyno.wide.address import CONNECT_S, REQUEST_S, Address, open_session
from dbdyno.wide.answer import VERSION, check_unchanged, count_with_noun, scan_plans
from dbdyno.wide.catalog import CLUSTERING, PARTITION, read_keyspace
from dbdyno.wide.mapping import WideMap, check
from dbdyno.wide.pushdown import Scan, explain_pushdown
from dbdyno.wide.query_analysis import DIALECT, analyse_query
from dbdyno.wide.spark_views import INET, MARK, view

LOCAL = "local[*]"
JARS = "DBDYNO_SPARK_CONNECTOR"
CONNECTOR = "com.datastax.spark:spark-cassandra-connector_2.12:3.5.1"
WHERE = "--engine spark"
FORMAT = "org.apache.spark.sql.cassandra"
PUSHED_FILTERS = "Cassandra Filters:"
KEEP_MS = 60_000
_questions = itertools.count()
_RUNS_CODE = {"reflect", "java_method", "try_reflect"}
_INNER = ("AdaptiveSparkPlan", "executedPlan"), ("ResultQueryStage", "plan"), ("ShuffleQueryStage", "plan")
_STAGES = dict((*_INNER, ("BroadcastQueryStage", "plan"), ("TableCacheQueryStage", "plan")))


def jars() -> list[Path]:
    """Return the connector's jars.

    Raises:
        WideError: The jars are missing.
    """
    named = os.environ.get(JARS)
    place = Path(named) if named else Path(__file__).resolve().parents[3] / "target" / "wide" / "connector" / "lib"
    found = sorted(place.glob("*.jar"))
    if not any(one.name.startswith("spark-cassandra-connector") for one in found):
        step = f"run `make setup-wide` in a clone of dbdyno, or set {JARS} to a folder with the jars of {CONNECTOR}"
        raise WideError("the Spark Cassandra connector is not installed", where=WHERE, next_step=step)
    return found


def check_scala_version(connector: Sequence[Path], spark: Path) -> None:
    """Check that the connector is built for Spark's Scala version, because neither reports a mismatch clearly.

    Raises:
        WideError: The versions differ.
    """
    own = next((one.name.split("-")[2] for one in spark.glob("scala-library-*.jar")), "")
    scala = ".".join(own.split(".")[:2])
    other = next((one.name for one in connector if one.name.startswith("spark-cassandra-connector_")), "")
    if scala and not other.startswith(f"spark-cassandra-connector_{scala}-"):
        raise WideError(
            f"the connector {other} does not match Spark, which is built with Scala {scala}",
            where=WHERE,
            next_step=f"run `pip install 'pyspark==3.5.*'`, or set {JARS} to a connector of Scala {scala}",
        )


def open_spark_session(master: str = LOCAL) -> Any:
    """Open a Spark session with the connector.

    Raises:
        WideError: PySpark, Java or the connector is missing, or the cluster cannot be reached.
    """
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        step = "run `pip install 'dbdyno[spark]'`"
        raise WideError("PySpark is not installed", where=WHERE, next_step=step) from None
    if find_program("java") is None:
        raise WideError("Java is not installed", where=WHERE, next_step="install Java 17")
    found = jars()
    check_scala_version(found, Path(pyspark.__file__).parent / "jars")
    settings = {
        "spark.jars": ",".join(map(str, found)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Errors are reported once, by dbdyno.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",  # a value that does not fit its type is an error
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    }
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
    builder = SparkSession.builder.master(master).appName("dbdyno wide")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise WideError(
            f"Spark cannot start a session: {first_line(error)}",
            where=f"--master {master}",
            next_step="check that the cluster is up",
        ) from None


def configure_connection(spark: Any, address: Address) -> None:
    """Set the nodes' addresses, the user and the timeouts in a Spark session for the connector."""
    settings = {
        "connection.host": ",".join(address.hosts),
        "connection.port": str(address.port),
        "connection.timeoutMS": str(int(CONNECT_S * 1000)),
        "read.timeoutMS": str(int(REQUEST_S * 1000)),
        "query.retry.count": "2",  # default: 60
        # A different keep-alive time forces a new connection: that of the previous query has an old catalog.
        "connection.keepAliveMS": str(KEEP_MS + next(_questions)),
    }
    if address.user:
        settings |= {"auth.username": address.user, "auth.password": address.password}
    for name, value in settings.items():
        spark.conf.set(f"spark.cassandra.{name}", value)


class SparkAnswer(Closeable):
    """Answer of a query by Spark, with the interface of `answer.Answer`.

    A session given as `spark` stays open afterwards.

    Raises:
        WideError: The query or the map is not valid, or Spark or the cluster reports an error.
    """

    def __init__(
        self,
        address: Address,
        wide_map: WideMap,
        text: str,
        file: str,
        *,
        filtering: bool = False,
        master: str = LOCAL,
        spark: Any = None,
    ) -> None:
        self._where, self._filtering, self._ending = address, filtering, contextlib.ExitStack()
        self.rows_out = self.elapsed_ns = 0
        try:
            self._node = self._ending.enter_context(open_session(address))
            self.map = check(wide_map, read_keyspace(self._node, address.keyspace), file)
            self._version = self._node.execute(VERSION).one()[0]
            self.question = analyse_query(text, self.map)
            self.scans = scan_plans(self.question, self.map, filtering)
            self._sql = transpile(self.question.sql)
            made = {
                name: view(one.scan.relation, one.scan.table, one.scan.columns, f"{name}_source")
                for name, one in self.scans.items()
            }
            self._spark = spark
            if spark is None:
                self._spark = open_spark_session(master)
                self._ending.callback(self._spark.stop)
            configure_connection(self._spark, address)
            self._views(made)
            self._frame = self._frame_with_functions()
        except BaseException:
            self._ending.close()
            raise

    def close(self) -> None:
        """Close the sessions of Spark and Cassandra that this answer opened."""
        self._ending.close()

    @property
    def names(self) -> list[str]:
        """Return the column names of the answer."""
        return list(self._frame.columns)

    def _views(self, made: dict[str, str]) -> None:
        if any(f"{INET}(" in sql for sql in made.values()):
            # An expression, so that executors need none of dbdyno's modules.
            self._spark.udf.register(INET, lambda text: text and str(__import__("ipaddress").ip_address(text)))
        with self._errors():
            for name, sql in made.items():
                scan = self.scans[name].scan
                options = {"table": scan.table.name, "keyspace": self._where.keyspace}
                options["pushdown"] = str(is_pushed(scan, self._filtering)).lower()
                self._spark.read.format(FORMAT).options(**options).load().createOrReplaceTempView(f"{name}_source")
                self._spark.sql(sql).createOrReplaceTempView(name)

    def _frame_with_functions(self) -> Any:
        from pyspark.sql import functions as f
        from pyspark.sql.types import TimestampType

        with self._errors():
            frame = self._spark.sql(self._sql)
            # The instant in UTC, not in this machine's time zone.
            plain = [f"c{at}" for at in range(len(frame.columns))]
            kinds = [one.dataType for one in frame.schema.fields]
            moved = [
                f.col(name).cast("timestamp_ntz").alias(name) if isinstance(kind, TimestampType) else f.col(name)
                for name, kind in zip(plain, kinds, strict=True)
            ]
            if any(isinstance(kind, TimestampType) for kind in kinds):
                return frame.toDF(*plain).select(*moved).toDF(*frame.columns)
            return frame

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the answer as they arrive.

        Raises:
            WideError: Spark reports an error, or a table was altered meanwhile.
        """
        began = time.monotonic_ns()
        with self._errors():
            for row in self._frame.toLocalIterator(prefetchPartitions=True):
                self.rows_out += 1
                yield tuple(bytes(one) if isinstance(one, bytearray) else one for one in row)
        check_unchanged(self._node, self._where, self._version, [one.scan for one in self.scans.values()])
        self.elapsed_ns = time.monotonic_ns() - began

    def explain(self, *, asked: bool = True) -> Iterator[str]:
        """Yield lines that say what was pushed down and what was read; without figures if `asked` is False."""
        for scan in (one.scan for one in self.scans.values()):
            yield (
                next(explain_pushdown(scan))
                + ", by Spark's connector"
                + ("" if is_pushed(scan, self._filtering) else ", whole")
            )
        for node in _scans(self._frame._jdf.queryExecution().executedPlan()):
            words = str(node.simpleString(100))
            pushed = next(
                (line.partition(PUSHED_FILTERS)[2] for line in words.splitlines() if PUSHED_FILTERS in line), ""
            ).strip()
            place = words.splitlines()[0].partition("Cassandra Scan: ")[2]
            yield f"  {place}: pushed {pushed[1:-1] or 'nothing'}"
            count = node.metrics().get("numOutputRows")
            if asked and count.isDefined():
                yield f"    read:        {count_with_noun(int(count.get().value()), 'row')}"
        if asked:
            yield f"answer: {count_with_noun(self.rows_out, 'row')} in {self.elapsed_ns / 1e9:.3g} s"

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn Spark's errors into `WideError`."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            said = str(error)
            guard = re.search(re.escape(MARK) + r"(.*)", said)
            if guard:
                step = 'write another type for the column in the map, such as type = "varchar", or omit --engine spark'
                raise WideError(guard[1].strip(), where=self._where.safe, next_step=step) from None
            cause = cause_of(said)
            words = cause or first_line(error)
            for name, one in self.scans.items():
                words = words.replace(name, one.scan.relation.name)
            step = (
                "correct the SQL, which is in DuckDB's dialect and translated to Spark's"
                if cause is None
                else "check the nodes, then run the query again"
            )
            raise WideError(words[:400], where="the query, by Spark", next_step=step) from None


def is_pushed(scan: Scan, filtering: bool) -> bool:
    """Return True if the connector may push down: its statements then need no ALLOW FILTERING, or that is permitted.

    The connector needs a whole partition key with one condition per column, of which only the last may be IN. It leaves
    out key conditions that it cannot use, but still asks for the clustering columns; the same holds for an index.
    """
    columns = scan.table.columns_with_roles(PARTITION)
    if filtering:
        return True
    if scan.statement.partitions is None:
        found = {_column(scan, one.column) for one in scan.pushed}
        also = {_column(scan, one.column) for one in scan.kept}
        return bool(found & scan.table.indexed) and not also & {
            one.name for one in scan.table.columns_with_roles(CLUSTERING)
        }
    asked = [_column(scan, one.column) for one in scan.pushed]
    firsts = ({key[at] for key in scan.statement.partitions} for at in range(len(columns) - 1))
    return all(asked.count(one.name) == 1 for one in columns) and all(len(values) <= 1 for values in firsts)


def _column(scan: Scan, name: str) -> str:
    mapped = scan.relation.column(name)
    return mapped.of if mapped is not None else ""


def transpile(sql: str) -> str:
    """Translate DuckDB's SQL to Spark's.

    Raises:
        WideError: The text is not a SELECT, or calls a function that runs code.
    """
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, read=DIALECT)
    if not isinstance(tree, exp.Query):
        raise WideError("expected a SELECT", where=WHERE, next_step="leave --engine out for INSERT, UPDATE and DELETE")
    odd = next((one.name for one in tree.find_all(exp.Anonymous) if one.name.lower() in _RUNS_CODE), None)
    if odd is not None:
        raise WideError(
            f"{odd} runs Java code, which is not allowed in a query", where=WHERE, next_step="leave the function out"
        )
    return tree.sql("spark")


def _scans(node: Any) -> Iterator[Any]:
    """Yield the scan nodes of an executed Spark plan."""
    name = str(node.nodeName())
    for word, inner in _STAGES.items():
        if name.startswith(word):
            yield from _scans(getattr(node, inner)())
            return
    if name.startswith("BatchScan"):
        yield node
    for many in (node.children(), node.subqueries()):
        for at in range(many.size()):
            yield from _scans(many.apply(at))


def cause_of(said: str) -> str | None:
    """Return the root cause of a failure in the JVM from Spark's message, or None if nothing failed there."""
    found: list[tuple[str, str]] = []
    for line in said.splitlines():
        if "most recent failure: " in line:
            rest = line.rpartition("): ")[2]
        elif "Caused by: " in line:
            rest = line.partition("Caused by: ")[2]
        else:
            rest = line[2:] if line.startswith(": ") else ""
        name, _, words = rest.partition(": ")
        if name and not name.strip().count(" "):
            found.append((name.strip().rpartition(".")[2], words.strip()))
    told = [pair for pair in found if pair[1]] or found
    return ": ".join(filter(None, told[-1])) if told else None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without the JVM's stack trace."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
