"""Measurement of claims: runs a specification over replications and queries its evidence with SQL.

Replication i of any claim is block i of the run: all arms use the same random numbers. Evidence is kept in the system's
temporary folder until the claim is decided.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import ModelError
from dbdyno.evidence.memory import file_connection
from dbdyno.hosts.model_blocks import ModelBlocks
from dbdyno.model.machine import Machine, machine_of

if TYPE_CHECKING:
    import duckdb

    from dbdyno.base.core_types import ModelArm, ModelSpec
    from dbdyno.hosts.workers import Workers


@dataclass(frozen=True)
class Arm:
    """An arm of a specification: its settings of the machine, its number of sessions and their workload."""

    name: str
    workload: Mapping[str, Any]
    sessions: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> ModelArm:
        """Return the arm in the form that the core takes."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "sessions": self.sessions,
            "workload": dict(self.workload),
        }


@dataclass(frozen=True)
class Evidence:
    """Evidence of a specification, with the views `calls`, `waits` and `metrics`."""

    connection: duckdb.DuckDBPyConnection
    replications: int

    def values(self, query: str) -> list[float]:
        """Return one number per replication, NaN if missing; `query` selects rows of (block, value)."""
        found = dict(self.connection.execute(query).fetchall())
        return [
            float(found[block]) if found.get(block) is not None else float("nan") for block in range(self.replications)
        ]

    def ratio(self, value: str, table: str, upper: str, lower: str, where: str = "true") -> list[float]:
        """Return, per replication, the aggregate `value` of the arm `upper` divided by that of the arm `lower`."""
        return self.values(
            f"select block, {value} filter (arm = '{upper}') / {value} filter (arm = '{lower}')"  # noqa: S608
            f" from {table} where {where} group by block"
        )

    def arm_values(self, value: str, table: str, arm: str, where: str = "true") -> list[float]:
        """Return, per replication, the aggregate `value` of one arm."""
        return self.values(
            f"select block, {value} from {table} where arm = '{arm}' and {where} group by block"  # noqa: S608
        )


class ReplicationCache(Closeable):
    """Cache of finished replications by specification, so that only the missing ones are run; a context manager."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._folders: dict[str, Path] = {}
        self._done: dict[str, int] = {}

    def close(self) -> None:
        """Remove the temporary folders."""
        self._stack.close()

    @contextlib.contextmanager
    def missing(self, spec: ModelSpec, wanted: int) -> Iterator[tuple[Path, range]]:
        """Yield the evidence folder of a specification and the numbers of the replications that have not been run."""
        key = json.dumps(spec, sort_keys=True)
        if key not in self._folders:
            folder = tempfile.TemporaryDirectory(prefix="dbdyno-claims-")
            self._folders[key] = Path(self._stack.enter_context(folder))
        yield self._folders[key], range(self._done.get(key, 0), wanted)
        self._done[key] = wanted


@dataclass(frozen=True)
class Bench:
    """Bench that runs the specifications of claims.

    `on_progress` is called after each finished replication. If `kept` is set, it stores the evidence for a later bench
    with more replications. If `workers` is set, the workers run the replications.
    """

    replications: int
    seed: int
    on_progress: Callable[[], None]
    kept: ReplicationCache | None = None
    workers: Workers | None = None

    def machine(self, name: str) -> Machine:
        """Return a built-in machine."""
        return machine_of(name)

    @contextlib.contextmanager
    def run(self, machine: str, arms: Sequence[Arm], *, transactions: int, warmup: int = 50) -> Iterator[Evidence]:
        """Yield the evidence of all arms over all replications.

        Args:
            machine: name of the machine.
            arms: the arms to run.
            transactions: transactions per session and replication.
            warmup: warm-up transactions per session, which run before the others and do not count.

        Raises:
            ModelError: the machine or an arm is not valid.
        """
        from dbdyno import _core

        spec: ModelSpec = {
            "machine": machine_of(machine).toml,
            "seed": self.seed,
            "transactions": transactions,
            "warmup_transactions": warmup,
            "arms": [arm.spec() for arm in arms],
        }
        run: _core.ModelRun | ModelBlocks = _core.ModelRun(spec)
        with contextlib.ExitStack() as stack:
            kept = self.kept or stack.enter_context(ReplicationCache())
            with kept.missing(spec, self.replications) as (scratch, missing):
                if self.workers is not None:
                    run = ModelBlocks(self.workers, spec, missing)

                def block(index: int) -> None:
                    run.block(index, scratch)
                    self.on_progress()

                with ThreadPoolExecutor(max_workers=min(self.replications, os.cpu_count() or 1)) as pool:
                    try:
                        list(pool.map(block, missing))
                    except BaseException:
                        run.stop()
                        raise
            with file_connection() as connection:
                for table in ("calls", "waits", "metrics"):
                    files = f"{scratch}/{table}/*.parquet"
                    connection.execute(
                        f"create temp view {table} as select * from read_parquet('{files}')"  # noqa: S608
                    )
                yield Evidence(connection, self.replications)


def value_of(machine: Machine, path: str) -> float:
    """Return the value of a numeric parameter of a machine.

    Raises:
        ModelError: the machine has no such parameter.
    """
    for row in machine.parameters:
        if row["path"] == path:
            return float(row["value"])
    raise ModelError(
        f"has no parameter {path}", where=machine.name, next_step="list the parameters with `dbdyno model show MACHINE`"
    )
