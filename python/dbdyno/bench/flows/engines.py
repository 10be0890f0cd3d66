"""Registry of the data-flow engines, one row per engine.

Each engine is a persistent process: it receives its tables, then runs flows and times each of them itself, so that no
time includes the start of the process.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import FlowError
from dbdyno.base.processes import find_program, python_command
from dbdyno.flow import pig_plans

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Engine:
    """An engine of data flows.

    Attributes:
        name: Name in plans.
        title: Name for readers.
        language: Language of its flows.
        optimizer_off: What is disabled when the optimizer is off, as a phrase for readers.
        keeps: The form in which the engine holds its tables, as a phrase for readers.
        missing: Returns what is not installed, or None.
        command: Returns the command that starts the engine's process; the argument is a folder to which the process may
            write.
        has_server: True if dbdyno starts a server for the engine.
    """

    name: str
    title: str
    language: str
    optimizer_off: str
    keeps: str
    missing: Callable[[], str | None]
    command: Callable[[Path], list[str]]
    has_server: bool = False
    at: str = ""
    """Environment variable that names a server that the user provides."""


def _worker(name: str) -> Callable[[Path], list[str]]:
    return lambda _: python_command("dbdyno.bench.flows.worker", name)


def _package(module: str, step: str) -> Callable[[], str | None]:
    return lambda: None if importlib.util.find_spec(module) else f"{module} is not installed ({step})"


def _no_spark() -> str | None:
    if find_program("java") is None:
        return "there is no program java on PATH"
    return _package("pyspark", "pip install 'dbdyno[spark]'")()


def _no_pig() -> str | None:
    try:
        pig_plans.jars()
    except FlowError as error:
        return f"{error.message} ({error.next_step})"
    return None


def _pig(scratch: Path) -> list[str]:
    own = (str(HERE / "Pig.java"), str(scratch), ",".join(pig_plans.RULES))
    return [str(find_program("java")), *pig_plans.OPTIONS, "-XX:+UseSerialGC", "-cp", f"{pig_plans.jars()}/*", *own]


ENGINES = {
    one.name: one
    for one in (
        Engine(
            "pig",
            "Pig",
            "pig",
            f"{len(pig_plans.RULES)} rules, each by its name",
            "text files, read each time",
            _no_pig,
            _pig,
        ),
        Engine(
            "spark",
            "Spark",
            "sql",
            "the rules that move steps, and adaptive execution",
            "cached in memory",
            _no_spark,
            _worker("spark"),
        ),
        Engine(
            "duckdb",
            "DuckDB",
            "sql",
            "the optimizer as a whole",
            "tables in memory",
            lambda: None,
            _worker("duckdb"),
        ),
        Engine(
            "postgres",
            "PostgreSQL",
            "sql",
            "join_collapse_limit and from_collapse_limit 1: the join order; conditions are still moved",
            "tables, analyzed",
            lambda: None,
            _worker("postgres"),
            has_server=True,
        ),
    )
}
