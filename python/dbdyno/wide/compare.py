"""Comparison of a Cassandra table with the loaded rows: the table is read back completely and compared by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.evidence.memory import memory_connection
from dbdyno.wide.address import Address, open_session
from dbdyno.wide.catalog import CLUSTERING, PARTITION, REGULAR, STATIC, WideColumn, WideTable, read_keyspace
from dbdyno.wide.decode import Decoder, arrow
from dbdyno.wide.keys import quote
from dbdyno.wide.scan import ScanProgress, read, statement_parameters
from dbdyno.wide.unload import full_scan


@dataclass(frozen=True)
class Comparison:
    """Number of rows (and partitions' static parts) that are only in the files, and only in the table."""

    rows: int
    lost: int
    others: int

    def sentences(self) -> list[str]:
        """Return the result as sentences."""
        if self.lost:
            return [f"DIFFERS: {self.lost:,} rows or parents are not in the table as intended."]
        said = [f"Proved: read back completely ({self.rows:,} rows), the table holds exactly what was loaded."]
        if self.others:
            said = [f"Proved: read back completely ({self.rows:,} rows), the table holds all that was loaded;"]
            said += [f"it also contains {self.others:,} rows or parents that this load did not write."]
        return said


def compare(address: Address, name: str, files: Sequence[Path]) -> Comparison:
    """Read the table back and compare it with the files.

    Raises:
        WideError: The table cannot be read.
    """
    with open_session(address) as session:
        table = read_keyspace(session, address.keyspace)[name]
        scan, count = full_scan(table), ScanProgress()
        asked = statement_parameters(session, address.keyspace, scan)
        batches = read(session, address.safe, asked, scan, count)
        duck = memory_connection()
        try:
            duck.register("coming", arrow().RecordBatchReader.from_batches(Decoder(scan).schema, batches))
            duck.execute("create table got as select * from coming")
            duck.read_parquet([str(one) for one in files]).create("wanted")
            return _comparison(duck, table, count.rows)
        finally:
            duck.close()


def _comparison(duck: Any, table: WideTable, rows: int) -> Comparison:
    names = {row[0]: row[1] for row in duck.execute("describe wanted").fetchall()}
    key, cluster = table.columns_with_roles(PARTITION), table.columns_with_roles(CLUSTERING)
    child = [*key, *cluster, *(one for one in table.columns_with_roles(REGULAR) if one.name in names)]
    there = f"where {quote(cluster[0].name)} is not null" if cluster else ""
    texts = {name for name, kind in names.items() if kind == "VARCHAR"}
    lost, others = _differ(duck, child, texts, there)
    static = [one for one in table.columns_with_roles(STATIC) if one.name in names]
    if static:
        more = _differ(duck, [*key, *static], texts, "", distinct=True)
        lost, others = lost + more[0], others + more[1]
    return Comparison(rows, lost, others)


def _differ(
    duck: Any, columns: Sequence[WideColumn], texts: AbstractSet[str], where: str, *, distinct: bool = False
) -> tuple[int, int]:
    chosen = ", ".join(_value(one, texts) for one in columns)
    text = "select {} {} from {} {}"
    sides = [text.format("distinct" if distinct else "", chosen, name, where) for name in ("wanted", "got")]
    found = []
    for first, second in (sides, sides[::-1]):
        row = duck.execute(f"select count(*) from ({first} except all {second})").fetchone()  # noqa: S608 (quoted names)
        found.append(int(row[0]))
    return found[0], found[1]


def _value(column: WideColumn, texts: AbstractSet[str]) -> str:
    """Return SQL that makes both sides comparable: timestamps as microseconds, decimals in text as numbers."""
    name = quote(column.name)
    if column.kind.name == "decimal" and column.name in texts:
        return f"cast({name} as {column.kind.sql})"
    return f"epoch_us({name})" if column.kind.name == "timestamp" else name
