"""Data sources of `dbdyno stats`: the operands, and the columns of the tables that they name.

An operand is a path (a Parquet or CSV file, a folder of them, a quoted glob), or RUN:TABLE for a table of a run. Whole
columns of Parquet go directly to the core; everything else (CSV, --where, a table that has to be joined) goes through
DuckDB, restricted to the operand's own files.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError, StatsError
from dbdyno.base.files import os_errors_as
from dbdyno.base.sql_text import quoted
from dbdyno.evidence.memory import memory_connection
from dbdyno.evidence.run import Run, find_run

if TYPE_CHECKING:
    import duckdb

GRAMMAR = "give a Parquet or CSV file, a folder, a quoted glob, or RUN:TABLE such as last:calls"
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt")
PACKED = (".gz", ".zst")
DEFAULT_COLUMN = "elapsed_ns"
NAMED_MOST = 12
LOOKED_AT = 10_000
"""Number of rows examined to decide whether a text column holds numbers."""
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_REAL = {"FLOAT", "DOUBLE", "HUGEINT", "UBIGINT", "UHUGEINT"}


@dataclass(frozen=True)
class Source:
    """One operand; if `counted` is True, only an experiment's calls in slices that count are used."""

    label: str
    files: tuple[Path, ...]
    form: str
    run: Run | None = None
    table: str = ""
    counted: bool = False


def resolve_all(operands: Sequence[str], folder: Path) -> list[Source]:
    """Return the sources that the operands name, with unique labels.

    Raises:
        EvidenceError: an operand names nothing that exists, or something that cannot be read.
    """
    sources = [resolve(operand, folder) for operand in operands]
    if len({source.label for source in sources}) < len(sources):
        return [replace(s, label=text) for s, text in zip(sources, operands, strict=True)]
    return sources


def resolve(operand: str, folder: Path) -> Source:
    """Return the source that one operand names.

    Raises:
        EvidenceError: the operand names nothing that exists, or something that cannot be read.
    """
    path = Path(operand)
    if path.is_dir():
        if (path / "manifest.json").is_file():
            raise EvidenceError(
                "is a run with several tables; expected one",
                where=operand,
                next_step=f"name a table, such as {operand}:calls",
            )
        return _of_files(operand, path.name, _inside(path))
    if path.is_file():
        return _of_files(operand, path.name.split(".")[0], [path])
    if glob.has_magic(operand):
        found = glob.glob(operand, recursive=True)  # noqa: PTH207 - the pattern may be absolute
        return _of_files(operand, operand, sorted(map(Path, found)))
    name, colon, table = operand.rpartition(":")
    if colon and name and table:
        return _of_run(find_run(name, folder), table)
    raise EvidenceError("does not name an existing file, folder or run", where=operand, next_step=GRAMMAR)


def is_run(operand: str, folder: Path) -> bool:
    """Return True if an operand names a run rather than a table or a file."""
    if Path(operand).is_file() or ":" in operand or glob.has_magic(operand):
        return False
    try:
        find_run(operand, folder)
    except EvidenceError:
        return False
    return True


def _inside(folder: Path) -> list[Path]:
    for suffixes in (PARQUET, CSV):
        found = sorted(p for p in folder.rglob("*") if _suffix(p) in suffixes and p.is_file())
        if found:
            return found
    return []


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix in PACKED else path
    return name.suffix.lower()


def _of_files(operand: str, label: str, files: list[Path]) -> Source:
    if not files:
        raise EvidenceError("contains no Parquet or CSV file", where=operand, next_step=GRAMMAR)
    forms = {"parquet" if _suffix(file) in PARQUET or _magic(file) else "csv" for file in files}
    if len(forms) > 1:
        raise EvidenceError("matches both Parquet and CSV files", where=operand, next_step="name files of one kind")
    return Source(label, tuple(files), forms.pop())


def _magic(file: Path) -> bool:
    step = "check the path and the permissions of the file"
    with os_errors_as(EvidenceError, "cannot be read", file, step), file.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _of_run(run: Run, table: str) -> Source:
    from dbdyno.evidence.query import is_trace, tables_of

    known = tables_of(run).split(", ")
    if table not in known:
        raise EvidenceError(
            f"has no table {table!r}", where=run.id, next_step=f"name one of the tables {', '.join(known)}"
        )
    single = run.path / f"{table}.parquet"
    files = sorted((run.path / table).glob("*.parquet")) or [single]
    files = [file for file in files if file.is_file()]
    counted = table == "calls" and not is_trace(run)
    return Source(run.id, tuple(files), "run" if counted or not files else "parquet", run, table, counted)


def _texts(files: Sequence[Path]) -> str:
    return ", ".join("'" + str(file.resolve()).replace("'", "''") + "'" for file in files)


def connect(source: Source) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with the view `data`, which can read only the source's files."""
    import duckdb

    if source.run is not None:
        from dbdyno.evidence.query import connect as connect_run

        connection, _ = connect_run(source.run)
        rows = f"select * from {source.table}"  # noqa: S608 - one of the known tables
        if source.counted:
            rows = (
                "select calls.* from calls semi join"
                " (select block, slice from slices where counts) using (block, slice)"
            )
        connection.execute(f"create temp view data as {rows}")
        return connection
    connection = memory_connection()
    files = _texts(source.files)
    reader = "read_parquet" if source.form == "parquet" else "read_csv"
    options = ", union_by_name = true" if len(source.files) > 1 else ""
    try:
        connection.execute(f"create view data as select * from {reader}([{files}]{options})")  # noqa: S608
        if source.form == "csv":
            _read_infinities(connection, f"{reader}([{files}]{options}")
        connection.execute(f"set allowed_paths = [{files}]")
    except duckdb.Error as error:
        connection.close()
        raise EvidenceError(_first_line(error), where=str(source.files[0])) from error
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    return connection


def _read_infinities(connection: duckdb.DuckDBPyConnection, reader: str) -> None:
    """Redefine the view `data` for CSV with `inf` and `nan`, which DuckDB reads as text or, in line 1, as names."""
    described = connection.execute("describe data").fetchall()
    if all(_is_double(row[0]) for row in described):
        reader += ", header = false"
        described = connection.execute(f"describe select * from {reader})").fetchall()  # noqa: S608
    texts = [quoted(row[0]) for row in described if row[1] == "VARCHAR"]
    asked = [f"count({name}) = count(try_cast({name} as double)) and count({name}) > 0" for name in texts]
    looked = f"select {', '.join(asked or ['true'])} from (from {reader}) limit {LOOKED_AT})"  # noqa: S608
    doubles = [
        name for name, is_double in zip(texts, connection.execute(looked).fetchall()[0], strict=False) if is_double
    ]
    replaced = f" replace ({', '.join(f'{name}::double as {name}' for name in doubles)})" if doubles else ""
    connection.execute(f"create or replace view data as select *{replaced} from {reader})")  # noqa: S608


def _is_double(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def columns_of(source: Source) -> dict[str, str]:
    """Return the columns with their DuckDB types.

    Raises:
        StatsError: a CSV file has no rows.
        EvidenceError: the source cannot be read.
    """
    import duckdb

    with connect(source) as connection:
        try:
            rows = connection.execute("describe data").fetchall()
            if source.form == "csv" and connection.execute("select 1 from data limit 1").fetchone() is None:
                raise StatsError(
                    "has no rows below the column names",
                    where=source.label,
                    next_step="check the program that wrote the file",
                )
        except duckdb.Error as error:
            raise EvidenceError(_first_line(error), where=source.label) from error
    return {row[0]: row[1] for row in rows}


def is_number(kind: str) -> bool:
    """Return True if a DuckDB type is numeric."""
    return kind in _WHOLE or kind in _REAL or kind.startswith("DECIMAL") or kind == "BOOLEAN"


def check_columns(known: dict[str, str], numbers: Sequence[str], words: Sequence[str]) -> None:
    """Raise `StatsError` if a column is missing, or one of `numbers` is not numeric."""
    for name in [*numbers, *words]:
        if name not in known:
            raise StatsError(
                f"there is no column {name!r}",
                next_step=f"use one of the columns {', '.join(known)}",
            )
    for name in numbers:
        if not is_number(known[name]):
            found = ", ".join(n for n, kind in known.items() if is_number(kind)) or "none"
            raise StatsError(
                f"column {name!r} is {known[name]}, not a number",
                next_step=f"use one of the columns of numbers: {found}",
            )


def default_column(known: dict[str, str]) -> str:
    """Return `elapsed_ns` if it exists, otherwise the only numeric column.

    Raises:
        StatsError: there is no numeric column, or more than one.
    """
    numbers = [name for name, kind in known.items() if is_number(kind)]
    if DEFAULT_COLUMN in numbers:
        return DEFAULT_COLUMN
    if len(numbers) == 1:
        return numbers[0]
    if not numbers:
        raise StatsError(
            "none of the columns contains numbers",
            next_step=f"give data with a column of numbers; found the columns {_column_list(known)}",
        )
    raise StatsError(
        "several columns contain numbers; expected one", next_step=f"name one of them with -y: {', '.join(numbers)}"
    )


def _column_list(known: dict[str, str]) -> str:
    return ", ".join(f"{name} ({kind.lower()})" for name, kind in list(known.items())[:NAMED_MOST])


@dataclass(frozen=True, eq=False)
class SourceColumns:
    """Columns of a source: `numbers` as arrays, `words` as (indexes into names, names)."""

    numbers: list[Any]
    words: list[tuple[Any, list[str]]]


def read_columns(
    source: Source, numbers: Sequence[str], words: Sequence[str] = (), where: str | None = None
) -> SourceColumns:
    """Read columns of the rows for which `where` holds.

    Raises:
        StatsError: a column is missing or not numeric.
        EvidenceError: the source cannot be read.
    """
    import duckdb

    from dbdyno.stats.arrays import natural_order

    with connect(source) as connection:
        try:
            known = {row[0]: row[1] for row in connection.execute("describe data").fetchall()}
            check_columns(known, numbers, words)
            picked = [f"{_number(name, known[name])} as n{at}" for at, name in enumerate(numbers)]
            picked += [f"coalesce(({quoted(name)})::varchar, 'NULL') as w{at}" for at, name in enumerate(words)]
            condition = f" where ({where}\n)" if where else ""
            connection.execute(
                f"create temp table picked as select {', '.join(picked)} from data{condition}"  # noqa: S608
            )
            lists, joins = [], []
            for at in range(len(words)):
                rows = connection.execute(f"select distinct w{at} from picked").fetchall()  # noqa: S608
                names = natural_order([row[0] for row in rows])
                lists.append(names)
                connection.execute(
                    f"create temp table names{at} as select unnest($1::varchar[]) as name,"
                    " unnest(range($2))::uinteger as code",
                    [names, len(names)],
                )
                joins.append(f"join names{at} on w{at} = names{at}.name")
            chosen = [f"n{at}" for at in range(len(numbers))]
            chosen += [f"names{at}.code as c{at}" for at in range(len(words))]
            found = connection.execute(
                f"select {', '.join(chosen)} from picked {' '.join(joins)}"  # noqa: S608
            ).fetchnumpy()
        except duckdb.Error as error:
            raise StatsError(
                _first_line(error), where=source.label, next_step="check --where and the columns"
            ) from error
    return SourceColumns(
        [found[f"n{at}"] for at in range(len(numbers))],
        [(found[f"c{at}"], names) for at, names in enumerate(lists)],
    )


def _number(name: str, kind: str) -> str:
    return f"({quoted(name)})::{'bigint' if kind in _WHOLE or kind == 'BOOLEAN' else 'double'}"


def largest_rows(
    source: Source, column: str, count: int, where: str | None = None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return column names and the complete rows with the largest values of a column.

    Raises:
        StatsError: the column is missing or not numeric.
    """
    import duckdb

    with connect(source) as connection:
        try:
            known = {row[0]: row[1] for row in connection.execute("describe data").fetchall()}
            check_columns(known, [column], [])
            condition = f" and ({where}\n)" if where else ""
            cursor = connection.execute(
                f"select * from data where {quoted(column)} is not null{condition}"  # noqa: S608
                f" order by {quoted(column)} desc limit {int(count)}"
            )
            names = [entry[0] for entry in cursor.description or []]
            return names, cursor.fetchall()
        except duckdb.Error as error:
            raise StatsError(
                _first_line(error), where=source.label, next_step="check --where and the columns"
            ) from error
