"""Spark SQL's plans (Hive's syntax), with Catalyst's rules and without those that reorder.

Both plans are executed, because Spark reports the rows of a step only after execution.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.base.errors import FlowError
from dbdyno.flow.conditions import atoms
from dbdyno.flow.step import Flow, Kind, Step
from dbdyno.flow.tables import InputTable

PREFIX = "org.apache.spark.sql.catalyst.optimizer."
RULES = (
    *("PushDownPredicates", "PushPredicateThroughJoin", "PushPredicateThroughNonJoin", "InferFiltersFromConstraints"),
    *("InferFiltersFromGenerate", "ColumnPruning", "ReorderJoin", "CostBasedJoinReorder", "EliminateOuterJoin"),
    *("PushDownLeftSemiAntiJoin", "PushLeftSemiLeftAntiThroughJoin", "CollapseProject", "EliminateSorts"),
    *("LimitPushDown", "PruneFilters", "EliminateLimits"),
)
OFF = "spark.sql.optimizer.excludedRules"
INSTALL = "run `pip install 'dbdyno[spark]'`, and install Java 17"
_KINDS = (
    ("Scan", Kind.SCAN),
    ("FileScan", Kind.SCAN),
    ("Filter", Kind.FILTER),
    ("Project", Kind.PROJECT),
    ("TakeOrderedAndProject", Kind.TOP),
    ("Sort", Kind.SORT),
    ("HashAggregate", Kind.GROUP),
    ("SortAggregate", Kind.GROUP),
    ("ObjectHashAggregate", Kind.GROUP),
    ("GlobalLimit", Kind.LIMIT),
    ("CollectLimit", Kind.LIMIT),
    ("LocalLimit", Kind.LIMIT),
    ("Union", Kind.UNION),
    ("Window", Kind.WINDOW),
    ("Deduplicate", Kind.DISTINCT),
)
_BY = re.compile(r"(?:^Sort |keys=|orderBy=)\[([^\]]+)\]")
_IDENTITY = re.compile(r"#\d+L?")
_ORDER = re.compile(r" (ASC|DESC) NULLS (?:FIRST|LAST)")
_WRAPPERS = ("WholeStageCodegen", "InputAdapter", "Exchange", "BroadcastExchange", "AdaptiveSparkPlan", "ColumnarToRow")


def flow(text: str, tables: Sequence[InputTable]) -> Flow:
    """Execute a SELECT with and without the reordering rules, and return both plans.

    Raises:
        FlowError: PySpark is missing, or Spark reports an error.
    """
    with session(tables) as spark:
        executed = _plan(spark, text, tables)
        spark.conf.set(OFF, ",".join(f"{PREFIX}{rule}" for rule in RULES))
        return Flow("spark", _plan(spark, text, tables), executed, f"{OFF}: {len(RULES)} rules")


def rows(text: str, tables: Sequence[InputTable]) -> tuple[list[Any], list[Any]]:
    """Return the rows of the answer without the reordering rules, and those with them.

    Raises:
        FlowError: PySpark is missing, or Spark reports an error.
    """
    with session(tables) as spark:
        executed = _frame(spark, text).collect()
        spark.conf.set(OFF, ",".join(f"{PREFIX}{rule}" for rule in RULES))
        return [tuple(one) for one in _frame(spark, text).collect()], [tuple(one) for one in executed]


def _frame(spark: Any, text: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        return spark.sql(text)
    except PySparkException as error:
        raise FlowError(str(error).strip().splitlines()[0], where="the query", next_step="correct the SQL") from None


@contextlib.contextmanager
def session(tables: Sequence[InputTable]) -> Iterator[Any]:
    """Open a Spark session with one thread and the tables as views, and stop it on exit.

    Raises:
        FlowError: PySpark is missing, or Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise FlowError("PySpark is not installed", where="--engine spark", next_step=INSTALL) from None
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("dbdyno flow")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # With more partitions, a sort would first run its inputs for a sample, and rows would count twice.
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except RuntimeError as error:
        raise FlowError(f"Spark did not start: {error}", where="--engine spark", next_step=INSTALL) from None
    try:
        spark.sparkContext.setLogLevel("ERROR")
        for one in tables:
            path = one.path.as_uri()
            read = spark.read.csv(path, header=True, inferSchema=True) if one.is_csv else spark.read.parquet(path)
            read.createOrReplaceTempView(one.name)
        yield spark
    finally:
        spark.stop()


def _plan(spark: Any, text: str, tables: Sequence[InputTable]) -> Step:
    files = {one.path.name: one.name for one in tables}
    frame = _frame(spark, text)
    frame.collect()
    return _step(frame._jdf.queryExecution().executedPlan(), files)


def _step(node: Any, files: dict[str, str]) -> Step:
    children = node.children()
    inputs = tuple(_step(children.apply(at), files) for at in range(children.size()))
    name = str(node.nodeName())
    if len(inputs) == 1 and name.startswith(_WRAPPERS):
        return inputs[0]
    words = str(node.simpleString(25))
    kind = next((kind for word, kind in _KINDS if name.startswith(word)), Kind.JOIN if "Join" in name else Kind.OTHER)
    # The aggregates before and after an exchange count as one.
    if kind == Kind.GROUP and len(inputs) == 1 and inputs[0].kind == Kind.GROUP:
        inputs = inputs[0].inputs
    if kind == Kind.SORT and ", false, " in words:
        # A sort within partitions only prepares a join.
        return inputs[0]
    metric = node.metrics().get("numOutputRows")
    rows = int(metric.get().value()) if metric.isDefined() else None
    text, parts = _words(kind, name, words, node, files)
    return Step(kind, text, parts, inputs, rows)


def _words(kind: str, name: str, words: str, node: Any, files: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    if kind == Kind.SCAN:
        paths = str(node.relation().location().rootPaths().mkString(","))
        file = paths.rpartition("/")[2]
        return files.get(file, file), ()
    if kind == Kind.FILTER:
        parts = atoms(words.partition(" ")[2])
        return " and ".join(parts), parts
    if kind == Kind.JOIN:
        sides = words.partition("[")[2].split("], [")
        pair = [one for side in sides[:2] for one in atoms(side.partition("]")[0])]
        how = next(
            (one for one in ("Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti") if one in words),
            "",
        )
        return f"{how.lower()} on {' = '.join(pair)}".strip(), ()
    if found := _BY.search(words):
        return f"by {_ORDER.sub(lambda how: ' desc' * (how[1] == 'DESC'), _IDENTITY.sub('', found[1]))}", ()
    return ("" if kind in (Kind.GROUP, Kind.SORT) else name), ()
