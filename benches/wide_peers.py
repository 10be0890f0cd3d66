"""What the peers of `dbdyno wide` run: one small program each, which does what its documentation shows.

The last prints CSV with a head: group, rows, sum; and on stderr `read: N rows`. DSBulk is none of them: of
com.datastax.oss neither dsbulk-runner nor dsbulk-distribution was to be had where these were written.
"""

from __future__ import annotations

CONCURRENT = """
import sys, psycopg
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args
dsn, port, keyspace, table, query = sys.argv[1:]
cluster = Cluster(["127.0.0.1"], port=int(port))
session = cluster.connect(keyspace)
statement = session.prepare(f"insert into {table} (customer, segment, line, cents, note) values (?, ?, ?, ?, ?)")
with psycopg.connect(dsn) as conn, conn.cursor("rows") as cursor:
    cursor.itersize = 10000
    cursor.execute(query)
    while rows := cursor.fetchmany(10000):
        execute_concurrent_with_args(session, statement, rows, concurrency=100)
cluster.shutdown()
"""
CONNECTOR = """
import os, sys
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
jars, port, keyspace, few = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").config("spark.cassandra.connection.host", "127.0.0.1")
         .config("spark.sql.shuffle.partitions", "4").config("spark.cassandra.connection.port", port).getOrCreate())
table = spark.read.format("org.apache.spark.sql.cassandra").options(table="t", keyspace=keyspace).load()
table.createOrReplaceTempView("t")
where = "" if few == "-" else f" where customer in ({few})"
frame = spark.sql(f"select segment, count(*), sum(cents) from t{where} group by segment")
print("segment,n,cents")
for row in frame.collect():
    print(*row, sep=",")
def scans(node):
    name = str(node.nodeName())
    if name.startswith("AdaptiveSparkPlan"):
        return scans(node.executedPlan())
    if "QueryStage" in name:
        return scans(node.plan())
    if name.startswith("BatchScan"):
        return int(node.metrics().get("numOutputRows").get().value())
    children = node.children()
    return sum(scans(children.apply(at)) for at in range(children.size()))
print(f"read: {scans(frame._jdf.queryExecution().executedPlan()):,} rows", file=sys.stderr)
spark.stop()
"""
PANDAS = """
import sys
import pandas as pd
from cassandra.cluster import Cluster
port, keyspace, few = sys.argv[1:]
cluster = Cluster(["127.0.0.1"], port=int(port))
session = cluster.connect(keyspace)
session.default_timeout = 300
session.row_factory = lambda names, rows: pd.DataFrame(rows, columns=names)
pages, answer = [], session.execute("select * from t")
while True:
    pages.append(answer._current_rows)
    if not answer.has_more_pages:
        break
    answer.fetch_next_page()
frame = pd.concat(pages)
print(f"read: {len(frame):,} rows", file=sys.stderr)
if few != "-":
    frame = frame[frame.customer.isin([int(one) for one in few.split(",")])]
print("segment,n,cents")
for segment, part in frame.groupby("segment"):
    print(segment, len(part), part.cents.sum(), sep=",")
cluster.shutdown()
"""
