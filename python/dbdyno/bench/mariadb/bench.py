"""The bench for a live MariaDB server, either embedded or named by a connection string.

Every change to the server is claimed, recorded and registered with the guardian before it is made. If arms differ only
in what a session can set, they alternate in slices while the sessions of all arms are open; otherwise each turn puts
its arm's settings and SQL in effect and reads the settings back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients.arms import start_sentences
from dbdyno.bench.engine import arm_server
from dbdyno.bench.engine.cold_start import restart_cold
from dbdyno.bench.engine.prepare import EngineFunctions
from dbdyno.bench.engine.turns import SERVER_LOST_STEP, EngineBench, SettingMismatchError, server_side_effects
from dbdyno.bench.mariadb.address import driver, error_text
from dbdyno.bench.mariadb.binaries import INSTALL
from dbdyno.bench.mariadb.clients import client_arm
from dbdyno.bench.mariadb.global_settings import apply_global_settings, claim_settings, differing_values
from dbdyno.bench.mariadb.objects import turn_sql, workload_objects
from dbdyno.bench.mariadb.observer import MariaDBObserver
from dbdyno.bench.mariadb.prepare import EMBEDDED, PreparedPlan, in_mariadb_dialect, open_targets, prepare
from dbdyno.bench.mariadb.remaining_sessions import MariaDBSessions
from dbdyno.bench.mariadb.restore import refuse_leftovers
from dbdyno.bench.protocol import BenchContext

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.prepare import ReadyArm
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan


class MariaDBBench(EngineBench):
    """Bench on the MariaDB servers of a plan's arms."""

    counts_at_once = True
    restart_words = "an option of the server, and restart"
    engine = EngineFunctions(open_targets, prepare, client_arm, turn_sql, MariaDBSessions)
    ready: PreparedPlan

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        if around.cut is not None and around.target:
            plan = replace(plan, dsn=around.target)
        super().__init__(in_mariadb_dialect(plan), around)

    def refusal(self, plan: Plan) -> str | None:
        """Return None if this bench can run the plan, otherwise the reason."""
        if plan.workload.kind is not None:
            return f"its workload {plan.workload.kind!r} has no version for MariaDB"
        if any(arm.command for arm in plan.arms):
            return "an arm has a command, which MariaDB's bench does not run"
        if plan.watch.statements:
            return "its plan watches pg_stat_statements"
        if plan.watch.waits in ("exact", "read"):
            return f"its plan asks for {plan.watch.waits} waits, which can be recorded on PostgreSQL only"
        return None

    @staticmethod
    def side_effects(plan: Plan, target: str | None) -> list[str]:
        """Return the servers that the plan connects to or starts, and what it sets and sends there, as sentences."""
        does, sends = server_side_effects(plan, target, EMBEDDED)
        return does + arm_server.side_effects(plan, INSTALL) + start_sentences(plan) + sends

    def _claim_servers(self) -> bool:
        for target in self._others().values():
            refuse_leftovers(target)
        altered = self._altered_servers()
        for target in altered.values():
            claim_settings(target, self.guardian)
        return bool(altered)

    def begin(self, run: Run, resumed: int) -> None:
        """Create the workload's objects and open the sessions that stay open.

        A resumed run draws different random numbers than before.
        """
        self.name = str(run.path.resolve())
        with self.server_errors():
            for target in self._altered_servers().values():
                claim_settings(target, self.guardian, self.name)
            for target in self._targets().values():
                objects = workload_objects(self.ready.plan.workload, target, self.guardian, self.stopping)
                self.held.enter_context(objects)
            self.load = self._load(resumed)
            self.observer = MariaDBObserver(self.ready)
            self._connect_lasting()

    def _stays_open(self) -> bool:
        alone = len(self.ready.arms) == 1 and not self.ready.arms[0].changes and not self.ready.arms[0].arm.cold
        return super()._stays_open() or alone

    def _others(self) -> dict[str, MariaDB]:
        return {name: target for name, target in self._targets().items() if not target.is_embedded}

    def _altered_servers(self) -> dict[str, MariaDB]:
        """Return the servers not started by dbdyno on which an arm alters a global setting, by address."""
        return {
            arm.target.safe_dsn: arm.target
            for arm in self.ready.arms
            if arm.changes_by_method("global") and not arm.target.is_embedded
        }

    def _apply_settings(self, ready: ReadyArm, stack: contextlib.ExitStack) -> None:
        options = {change.name: change.literal.strip("'") for change in ready.changes_by_method("restart")}
        if ready.arm.cold:
            self.observer.drop_connections()
            restart_cold(ready.target, lambda: ready.target.start(options))
        elif self.ready.timing.switch == "restart":
            # Every turn of every arm begins the same way, with caches as after a start.
            self.observer.drop_connections()
            ready.target.restart(options)
        stack.enter_context(apply_global_settings(ready.target, ready.changes, self.guardian, self.name))

    def _read_back(self, number: int) -> None:
        """Check in a new session that every setting that any arm alters has this arm's value.

        Raises:
            SettingMismatchError: A setting has another value.
        """
        own = self.ready.arms[number]
        wanted = {
            change.name: change.before
            for arm in self.ready.arms
            if arm.target is own.target
            for change in arm.server_changes()
        }
        wanted |= {change.name: change.value for change in own.server_changes()}
        if wanted and (differing := differing_values(own.target, wanted)):
            raise SettingMismatchError(
                f"a setting does not have the value that arm {own.arm.name!r} sets: {differing}",
                where=own.target.safe_dsn,
                next_step="find out who alters the setting, or write the value as the server shows it, then run again",
            )

    def _version_words(self, facts: JsonObject) -> str:
        return str(facts.get("version", "")).partition("-")[0]

    @contextlib.contextmanager
    def server_errors(self) -> Iterator[None]:
        """Return a context that turns the loss of a server or its connection into a `TargetError` with a next step."""
        try:
            yield
        except driver().Error as error:
            raise TargetError(
                f"the server closed the connection: {error_text(error)}", next_step=SERVER_LOST_STEP
            ) from error


BENCH = MariaDBBench
