"""What the peers of the mover run: one small program each, which does what its documentation shows.

The arguments are the connection, then what is read or written. Whoever lacks a program sets it up by
`python benches/move.py --set-up` (Debian's pgloader, PostgreSQL's JDBC driver by Maven).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

CONNECTORX = """
import sys, connectorx, pyarrow.parquet as pq
reader = connectorx.read_sql(sys.argv[1], "select * from t", return_type="arrow_stream", protocol="binary")
writer = None
for batch in reader:
    writer = writer or pq.ParquetWriter(sys.argv[2] + "/t.parquet", batch.schema, compression="zstd")
    writer.write_batch(batch)
writer.close()
"""
ADBC = """
import sys, adbc_driver_postgresql.dbapi as adbc, pyarrow.parquet as pq
with adbc.connect(sys.argv[1]) as conn, conn.cursor() as cursor:
    cursor.execute("select * from t")
    reader = cursor.fetch_record_batch()
    with pq.ParquetWriter(sys.argv[2] + "/t.parquet", reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
"""
_DUCKDB = """
import sys, duckdb
db = duckdb.connect(config={"autoinstall_known_extensions": "false"})
db.execute("load postgres")
"""
DUCKDB = f"""{_DUCKDB}\
db.execute("attach '" + sys.argv[1] + "' as pg (type postgres)")
db.execute("insert into pg.public.u select * from read_parquet('" + sys.argv[2] + "/*.parquet')")
"""
DUCKDB_OUT = f"""{_DUCKDB}\
db.execute("attach '" + sys.argv[1] + "' as pg (type postgres, read_only)")
db.execute("copy (from pg.public.t) to '" + sys.argv[2] + "/t.parquet' (compression zstd)")
"""
ADBC_IN = """
import sys, adbc_driver_postgresql.dbapi as adbc, pyarrow.dataset as ds
with adbc.connect(sys.argv[1]) as conn, conn.cursor() as cursor:
    cursor.adbc_ingest("u", ds.dataset(sys.argv[2]).scanner().to_reader(), mode="append")
    conn.commit()
"""
_SPARK = """
import sys
from pyspark.sql import SparkSession
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
jdbc = {"url": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}", "user": url.username,
        "password": url.password, "driver": "org.postgresql.Driver"}
spark = (SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[3]).config("spark.driver.memory", "1g")
         .config("spark.ui.enabled", "false").config("spark.sql.parquet.compression.codec", "zstd").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
"""
_END = """
java = spark.sparkContext._gateway
spark.stop()
java.shutdown()
java.proc.stdin.close()
java.proc.wait()  # its CPU is the reader's
"""
SPARK_OUT = (
    _SPARK
    + """
rows = spark.read.format("jdbc").options(**jdbc, dbtable="t", fetchsize=10000, partitionColumn="id", lowerBound=1,
                                         upperBound=int(sys.argv[4]), numPartitions=2).load()
rows.write.parquet(sys.argv[2] + "/t")
"""
    + _END
)
SPARK_IN = (
    _SPARK
    + """
rows = spark.read.parquet(sys.argv[2])
how = {**jdbc, "dbtable": "u", "batchsize": "10000", "reWriteBatchedInserts": "true"}
rows.write.format("jdbc").options(**how).mode("append").save()
"""
    + _END
)
PGLOADER = """
load csv from '{csv}' with encoding utf-8
    into {url}?tablename=u
    with skip header = 1, fields terminated by ',', fields optionally enclosed by '"', workers = 2, concurrency = 1;
"""
DRIVER = "org.postgresql:postgresql:42.7.7"


def set_up(folder: Path) -> None:
    """Installs what is no Python package."""
    subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "pgloader"], check=True)
    copy = ["mvn", "-q", "dependency:copy", f"-Dartifact={DRIVER}", f"-DoutputDirectory={folder}"]
    subprocess.run(copy, check=True)


def driver(folder: Path) -> str:
    """PostgreSQL's JDBC driver; a name that is not there where it was not set up."""
    return str(next(iter(sorted(folder.glob("postgresql-*.jar"))), folder / "postgresql.jar"))
