"""Registry of the built-in clients, one row per client; a new client is a file in this folder and a row here.

`make setup-clients` installs what they need into the clone: Python packages into .venv, the rest below target/clients.
DBDYNO_CLIENTS names another folder for the rest.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.base.errors import PlanError
from dbdyno.base.processes import find_program, python_command, python_environment

HERE = Path(__file__).resolve().parent
INSTALL = "make setup-clients"
DUCKDB_EXTENSION = "duckdb_extension_postgres_scanner"
"""Python package that contains DuckDB's reader of PostgreSQL."""


@dataclass(frozen=True)
class ClientCommand:
    """How a client is started: its command, and the environment variables it needs besides those of the connection."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BuiltinClient:
    """A client that comes with dbdyno.

    Attributes:
        name: Its name in plans.
        what: Its description.
        missing: Returns what is not installed, or None.
        started: Returns how the client is started, if nothing is missing.
    """

    name: str
    what: str
    missing: Callable[[], str | None]
    started: Callable[[], ClientCommand]
    frames: bool = False
    """True if all rows become a data frame; otherwise rows are read one by one."""
    packages: tuple[str, ...] = ()
    """Python packages that the client needs."""
    engines: tuple[str, ...] = ("postgres",)
    """Engines for which the client has a driver."""
    slow: bool = False
    """True if many rows take seconds; a study then uses the client only on request."""
    libpq: bool = False
    """True if the client connects with libpq, so that it honours every option of a connection string."""


def install_command(client: BuiltinClient) -> str:
    """Return the command that installs a client, in a clone or for an installed wheel."""
    return f"{INSTALL}, or pip install {' '.join(client.packages)}" if client.packages else INSTALL


def missing_packages(packages: Sequence[str]) -> str | None:
    """Return a clause that says that these packages are not installed, or None if there are none."""
    if len(packages) < 2:
        return f"the package {packages[0]} is not installed" if packages else None
    return f"the packages {', '.join(packages[:-1])} and {packages[-1]} are not installed"


def driver_folder() -> Path:
    """Return the folder of drivers and compiled classes that are not Python packages."""
    own = os.environ.get("DBDYNO_CLIENTS")
    return Path(own).absolute() if own else HERE.parents[3] / "target" / "clients"


def _python(
    name: str, what: str, module: str, packages: Sequence[str], *words: str, frames: bool = False, libpq: bool = False
) -> BuiltinClient:
    def missing() -> str | None:
        gone = [package for package in packages if importlib.util.find_spec(package) is None]
        return missing_packages(gone)

    def started() -> ClientCommand:
        return ClientCommand(python_command(f"dbdyno.bench.clients.{module}", *words), python_environment())

    return BuiltinClient(name, what, missing, started, frames, tuple(packages), libpq=libpq)


def _jar() -> Path | None:
    return next(iter(sorted(driver_folder().glob("java/postgresql-*.jar"))), None)


def _no_java() -> str | None:
    if find_program("java") is None:
        return "there is no program java on PATH"
    return (
        None
        if _jar() and (driver_folder() / "java" / "Jdbc.class").exists()
        else "pgjdbc and its client are not set up"
    )


def _java() -> ClientCommand:
    jars = [_jar(), *sorted(driver_folder().glob("java/mariadb-java-client-*.jar"))]
    classes = os.pathsep.join(map(str, (driver_folder() / "java", *jars)))
    # One garbage collector thread, and class data sharing: the client shares its cores with the server.
    return ClientCommand([str(find_program("java")), "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classes, "Jdbc"])


def _no_node() -> str | None:
    if find_program("node") is None:
        return "there is no program node on PATH"
    return None if (driver_folder() / "node" / "node_modules" / "pg").exists() else "node-postgres is not set up"


def _node() -> ClientCommand:
    modules = {"NODE_PATH": str(driver_folder() / "node" / "node_modules")}
    return ClientCommand([str(find_program("node")), str(HERE / "node_postgres.cjs")], modules)


def _r(name: str, what: str, way: str) -> BuiltinClient:
    def missing() -> str | None:
        if find_program("Rscript") is None:
            return "there is no program Rscript on PATH"
        if not (driver_folder() / "r" / "r_clock.so").exists():
            return "R with DBI, RPostgreSQL, rJava and jsonlite is not set up"
        return None if way == "rpostgresql" else _no_java()

    def started() -> ClientCommand:
        return ClientCommand(
            [str(find_program("Rscript")), "--vanilla", str(HERE / "r_client.R"), way, str(driver_folder())]
        )

    return BuiltinClient(name, what, missing, started, frames=True, slow=way == "jdbc-rows")


def _duckdb(name: str, what: str) -> BuiltinClient:
    def missing() -> str | None:
        if importlib.util.find_spec("pandas") is None:
            return "the package pandas is not installed"
        return (
            None
            if (driver_folder() / "duckdb" / DUCKDB_EXTENSION).exists()
            else "DuckDB with its extension postgres is not set up"
        )

    def started() -> ClientCommand:
        own = python_environment()
        # First in the path: a DuckDB of the extension's version, which may differ from the one that dbdyno uses.
        path = {"PYTHONPATH": os.pathsep.join([str(driver_folder() / "duckdb"), own["PYTHONPATH"]])}
        return ClientCommand(python_command("dbdyno.bench.clients.frames", name), {**own, **path})

    return BuiltinClient(name, what, missing, started, frames=True, libpq=True)


_FRAMES = "frames"
_ROWS: tuple[BuiltinClient, ...] = (
    _python("psycopg", "psycopg 3, rows as tuples", "psycopg_client", ["psycopg"], libpq=True),
    _python("asyncpg", "asyncpg, rows as records", "asyncpg_client", ["asyncpg"]),
    BuiltinClient(
        "jdbc",
        "pgjdbc, or Connector/J on MariaDB, on Java; reads every column",
        _no_java,
        _java,
        engines=("postgres", "mariadb"),
    ),
    BuiltinClient("node-postgres", "node-postgres, rows as objects", _no_node, _node),
    _python(
        "pandas",
        "pandas over psycopg: rows into a data frame",
        _FRAMES,
        ["pandas", "psycopg"],
        "pandas",
        frames=True,
        libpq=True,
    ),
    _python(
        "connectorx",
        "ConnectorX into a pandas data frame; it connects for each query",
        _FRAMES,
        ["connectorx", "pandas"],
        "connectorx",
        frames=True,
    ),
    _python(
        "adbc",
        "ADBC into a pandas data frame through Arrow",
        _FRAMES,
        ["adbc_driver_postgresql", "pandas", "pyarrow"],
        "adbc",
        frames=True,
        libpq=True,
    ),
    _python(
        "polars",
        "polars over ADBC",
        _FRAMES,
        ["polars", "adbc_driver_postgresql", "pyarrow"],
        "polars",
        frames=True,
        libpq=True,
    ),
)
_ROWS += (
    _duckdb("duckdb", "DuckDB's reader into a pandas data frame: the server runs the query's text"),
    _duckdb("duckdb-scan", "DuckDB with the server attached: DuckDB plans the query and reads the tables"),
    _r("r-postgresql", "R with DBI and RPostgreSQL into a data frame", "rpostgresql"),
    _r("r-jdbc-rows", "R with pgjdbc and rJava: value by value into a data frame", "jdbc-rows"),
    _r("r-jdbc-columns", "R with pgjdbc and rJava: column by column into a data frame", "jdbc-columns"),
)
BUILTIN_CLIENTS: Mapping[str, BuiltinClient] = {row.name: row for row in _ROWS}


def locate(client: str | Sequence[str], folder: Path, where: str) -> ClientCommand:
    """Return how a client is started: a built-in one by its name, any other by its command.

    Args:
        client: The name of a built-in client, or a command as a list of words.
        folder: Folder to which a relative path of the program refers.
        where: Place of the client in the plan, for errors.

    Raises:
        PlanError: The client is unknown or not installed.
    """
    if not isinstance(client, str):
        return ClientCommand([_program(client[0], folder, where), *client[1:]])
    row = BUILTIN_CLIENTS.get(client)
    if row is None:
        raise PlanError(
            f"there is no client {client!r}",
            where=where,
            next_step=f"use one of {', '.join(BUILTIN_CLIENTS)}, or give a command as a list of words;"
            " list the clients "
            f"with `dbdyno client list`",
        )
    if (gone := row.missing()) is not None:
        raise PlanError(
            f"the client {client} cannot run: {gone}", where=where, next_step=f"install it with: {install_command(row)}"
        )
    return row.started()


def _program(word: str, folder: Path, where: str) -> str:
    """Return the full path of a program; a bare name is searched on PATH, never in the current folder.

    Raises:
        PlanError: There is no such program.
    """
    program = folder.absolute() / word if "/" in word else find_program(word)
    if program is None or not os.access(program, os.X_OK) or program.is_dir():
        raise PlanError(f"there is no program {word!r}", where=where, next_step="install the program, or give its path")
    return str(program)
