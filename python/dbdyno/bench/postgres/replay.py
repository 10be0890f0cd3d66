"""A captured run as the load of arms; `ReplayLoad` has the interface of `_core.Load`.

A turn replays the whole capture once. If the replay may write, it does so in a separate copy of the database as it was
when the capture began; the copy is created before the turn and dropped after it. Every turn of every arm therefore
begins with the same rows, and no turn includes the time for copying. Without such a database, sessions are read-only
and nothing is copied.

Limits: a database can be copied only while nobody is connected to it; the copy's pages are partly in the server's
buffers, for all arms alike; sessions log in as the plan's connection specifies.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients.external_load import PartWriter
from dbdyno.bench.postgres.keys.plan import key_plan
from dbdyno.evidence.capture_keys import KeyPlan, unmapped_keys
from dbdyno.evidence.captures import LIMITS
from dbdyno.hosts.load_reports import empty_report
from dbdyno.study.plan.replay import NAME, core_speed

if TYPE_CHECKING:
    from dbdyno.base.core_types import ArmReport, LoadReport, LoadSpec
    from dbdyno.bench.postgres.prepare import PreparedPlan
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.protocol import BenchContext

DIFFERENCES = ("rows_differ", "fails_now", "failed_then", "fails_otherwise", "uneven", "left_out", "broken")
"""Names of a replay's counters of answers that differ from those in the capture."""
_TRANSACTION = 0
_FORCED = 130_000
"""Lowest server version in which a database can be dropped while sessions are connected to it."""


class ReplayLoad(PartWriter):
    """Load that replays a capture in each arm's turns."""

    def __init__(self, ready: PreparedPlan, around: BenchContext) -> None:
        self.ready, self.around = ready, around
        self.spec: LoadSpec = ready.load_spec()
        super().__init__(self.spec)
        self.statement = self.core.statement_names().index(NAME)
        self.token = secrets.token_hex(4)
        self.template = ready.plan.workload.template
        self.keys: dict[str, KeyPlan] = {}
        """Places of keys, by server; empty where sessions are read-only, because they generate none."""
        self.copied_ns: dict[int, int] = {}
        self.fresh: set[int] = set()
        self.player: Any = None
        self.count = 0

    @property
    def writes(self) -> bool:
        """Return True if the turns write; each of them then uses a copy of the database."""
        return self.template is not None

    @contextlib.contextmanager
    def databases(self) -> Iterator[None]:
        """Create the database that the set-up fills; drop it and all copies when the context ends."""
        targets = {arm.target.safe_dsn: arm.target for arm in self.ready.arms}.values()
        setup = self.ready.plan.workload.setup
        with contextlib.ExitStack() as stack:
            if setup:
                self.template = f"dbdyno_replay_from_{self.token}"
            for target in targets:
                if self.writes:
                    stack.enter_context(self._drop_at_end(target, self._copy))
                if setup:
                    stack.enter_context(self._drop_at_end(target, str(self.template)))
                    self._fill(target, setup)
            yield

    @property
    def _copy(self) -> str:
        return f"dbdyno_replay_{self.token}"

    def _drop_at_end(self, target: Postgres, name: str) -> contextlib.AbstractContextManager[Any]:
        undo = target.sql_undo("database of a replay", [drop_sql(target, name)])
        return self.around.guardian.undo(undo)

    def _fill(self, target: Postgres, setup: Sequence[str]) -> None:
        with _server_errors(target, "workload.setup"):
            with contextlib.closing(target.connect(statement_timeout_ms=0)) as conn:
                conn.execute(f'create database "{self.template}"'.encode())
            own = target.in_database(str(self.template))
            with contextlib.closing(
                own.connect(statement_timeout_ms=0, stop=self.around.stopping.is_requested)
            ) as conn:
                for statement in setup:
                    conn.execute(statement.encode())

    def connect(self, arm: int) -> None:
        """Create the copy of the database for the arm's next turn.

        Raises:
            TargetError: The server refuses the copy.
            Interrupted: A signal arrived meanwhile.
        """
        if not self.writes:
            return
        from psycopg import errors, sql

        target = self.ready.arms[arm].target
        began = time.monotonic_ns()
        drop = drop_sql(target, self._copy)
        make = sql.SQL("create database {} template {}").format(
            sql.Identifier(self._copy), sql.Identifier(str(self.template))
        )
        stop = self.around.stopping.is_requested
        with (
            _server_errors(target, f"a copy of {self.template}"),
            contextlib.closing(target.connect(statement_timeout_ms=0, stop=stop)) as conn,
        ):
            conn.execute(drop.encode())
            conn.execute(make)
            # If this role may, write the copy's dirty pages before the turn, not during it.
            with contextlib.suppress(errors.InsufficientPrivilege):
                conn.execute("checkpoint")
        if not self.copied_ns:
            took = (time.monotonic_ns() - began) / 1e9
            self.around.note(f"a copy of the database took {took:.2f} s; each turn makes one")
        self.copied_ns[arm] = time.monotonic_ns() - began
        self.fresh.add(arm)
        self._read_keys(target)

    def _read_keys(self, target: Postgres) -> None:
        """Find the keys in the capture's statements, using the catalog of a copy, once per server."""
        if target.safe_dsn in self.keys:
            return
        with _server_errors(target, "its catalog"):
            plan = key_plan(target.in_database(self._copy), Path(str(self.ready.plan.workload.replay)))
        self.keys[target.safe_dsn] = plan
        for sentence in unmapped_keys(plan):
            self.around.note(sentence)

    def disconnect(self, arm: int) -> None:
        """Drop the copy of the database that the arm's turn used."""
        self.fresh.discard(arm)
        if not self.writes:
            return
        target = self.ready.arms[arm].target
        with _server_errors(target, "a copy"), contextlib.closing(target.connect(statement_timeout_ms=0)) as conn:
            conn.execute(drop_sql(target, self._copy).encode())

    def stop(self) -> None:
        """Ask the running replay to end soon; called from a signal handler."""
        if (player := self.player) is not None:
            player.stop()

    def progress(self) -> int:
        """Return the number of transactions of all finished turns."""
        return self.count

    def run(self, block: int, slices: Sequence[tuple[int, int, int | None, int | None]]) -> LoadReport:
        """Replay the capture once for each turn, and return the report of a load.

        Raises:
            TargetError: No part of the capture could be replayed.
        """
        began_ns, cpu_ns = time.time_ns(), time.process_time_ns()
        rows = [self._turn(block, arm, number) for arm, number, *_ in slices]
        return {
            **empty_report(began_ns),
            "ended_ns": time.time_ns(),
            "cpu_ns": time.process_time_ns() - cpu_ns,
            "threads": self.ready.plan.sessions,
            "interrupted": any(told["stopped"] for _, told in rows),
            "arms": [cast("ArmReport", row) for row, _ in rows],
        }

    def _turn(self, block: int, arm: int, number: int) -> tuple[JsonObject, JsonObject]:
        from dbdyno import _core

        if self.writes and arm not in self.fresh:
            self.connect(arm)
        self.fresh.discard(arm)
        player = self.player = _core.Replay(json.dumps(self._request(arm)))
        if self.around.stopping.asked:
            player.stop()
        told = json.loads(player.finish())
        self.player, columns = None, json.loads(player.timed())
        failures = columns.pop("failures")
        count = len(columns["session"])
        if not count and not told["stopped"]:
            said = (told["told"] or ["no session received its first answer"])[0]
            raise TargetError(f"the capture could not be replayed: {said}", where=self._name(arm))
        self._keep(block, arm, number, columns, failures)
        self.count += count
        unexpected = {at + 1 for at, (_, known) in enumerate(failures) if not known}
        ends = [start + length for start, length in zip(columns["started_ns"], columns["elapsed_ns"], strict=True)]
        lasted = max(ends, default=0) - min(columns["started_ns"], default=0)
        differing = sum(told[key] for key in DIFFERENCES)
        row = {
            "arm": arm,
            "transactions": count,
            "errors": sum(error in unexpected for error in columns["error"]),
            "retries": 0,
            "skipped": 0,
            "busy_ns": lasted * self.ready.plan.sessions,
            "lag_max_ns": 0,
            "first_error": next((f"SQLSTATE {state}" for state, known in failures if not known), None),
            "answers": told["same"] + differing,
            "answers_differ": differing,
            "answers_told": next(iter(told["told"]), None),
            "late_max_ns": told["late_ns"],
            "copied_ns": self.copied_ns.pop(arm, 0),
        }
        return row, told

    def _request(self, arm: int) -> JsonObject:
        """Return the input for the core's replay; it contains passwords, so it must be kept in memory only."""
        own, work = self.spec["arms"][arm], self.ready.plan.workload
        connection = dict(own["connection"])
        connection["options"] = " ".join(filter(None, (connection.get("options"), LIMITS)))
        if self.writes:
            connection["dbname"] = self._copy
        return {
            "run": work.replay,
            "connection": connection,
            "speed": core_speed(work.speed),
            "order": work.order == "commit",
            "writes": self.writes,
            "session_sql": own["session_sql"],
            "timed": True,
            "keys": self.keys.get(self.ready.arms[arm].target.safe_dsn, KeyPlan()).request(),
        }

    def _keep(
        self, block: int, arm: int, number: int, columns: dict[str, list[int]], failures: list[tuple[str, bool]]
    ) -> None:
        """Add a turn's transactions to the block's evidence part."""
        count = len(columns["session"])
        same = {"slice": number, "statement": self.statement, "kind": _TRANSACTION, "intended_ns": -1}
        whole = {**columns, **{name: [value] * count for name, value in same.items()}}
        self.core.add_calls(arm, block, whole, [(state, 0, "", known) for state, known in failures])

    def _name(self, arm: int) -> str:
        return f"arm {self.ready.arms[arm].arm.name!r}"


def drop_sql(target: Postgres, name: str) -> str:
    """Return the statement that drops a database, with its sessions if the server can."""
    with contextlib.closing(target.connect()) as conn:
        forced = " with (force)" if conn.info.server_version >= _FORCED else ""
    return f'drop database if exists "{name}"{forced}'


@contextlib.contextmanager
def _server_errors(target: Postgres, what: str) -> Iterator[None]:
    """Return a context that turns server errors into `TargetError`, and a stop request into `Interrupted`."""
    import psycopg

    from dbdyno.base.signals import Interrupted
    from dbdyno.bench.postgres.session import StopRequested

    try:
        yield
    except StopRequested as error:
        raise Interrupted from error
    except psycopg.Error as error:
        steps = {
            "55006": "end all sessions in the database: it cannot be copied while anybody is connected to it",
            "42501": "connect as a superuser, or as a role that owns the database and has CREATEDB",
        }
        raise TargetError(
            f"the server refuses {what}: {str(error).splitlines()[0]}",
            where=target.safe_dsn,
            next_step=steps.get(error.sqlstate or "", "run the statement manually, then correct the plan"),
        ) from error
