"""Operations that a Python bench times one by one: their evidence part and their report of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbdyno.bench.recorder import Recorder
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

_COLUMNS = ("arm", "block", "slice", "session", "statement", "started_ns", "elapsed_ns", "rows", "error")
_COUNTS = ("transactions", "errors", "retries", "skipped", "busy_ns", "lag_max_ns")


class Operations:
    """Collector of the timed operations of one block."""

    def __init__(self, plan: Plan, recorder: Recorder) -> None:
        self.names = [arm.name for arm in plan.arms]
        self.recorder = recorder
        self.expected = frozenset(plan.workload.expected_errors)
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.counts: list[dict[str, int]] = [{"arm": at, **dict.fromkeys(_COUNTS, 0)} for at in range(len(self.names))]
        self.said: dict[int, str] = {}

    def add(
        self,
        turn: Turn,
        started_ns: int,
        elapsed_ns: int,
        *,
        rows: int = 1,
        session: int = 0,
        error: str | None = None,
        said: str = "",
        costs: Mapping[str, int] | None = None,
    ) -> None:
        """Add one timed operation.

        Args:
            turn: The turn to which the operation belongs.
            started_ns: Start time in ns.
            elapsed_ns: Duration in ns.
            rows: Number of rows; recorded as 0 if the operation failed.
            session: Number of the session.
            error: Error code of five characters, or None if the operation succeeded.
            said: The error message, if the operation failed.
            costs: Resources used, summed per arm; their names are in `study/analysis/measured/resources.py`.
        """
        about = (self.names[turn.arm], self.recorder.planned.index, turn.slice, session, "operation")
        times = (started_ns, elapsed_ns, 0 if error else rows, error)
        for name, value in zip(_COLUMNS, (*about, *times), strict=True):
            self.columns[name].append(value)
        own = self.counts[turn.arm]
        own["transactions"] += 1
        own["busy_ns"] += elapsed_ns
        for name, amount in (costs or {}).items():
            own[name] = own.get(name, 0) + amount
        if error and error not in self.expected:
            own["errors"] += 1
            self.said.setdefault(turn.arm, said or error)

    def write(self) -> None:
        """Write the block's `calls` part and add its report to the recorder."""
        from dbdyno import _core

        recorder = self.recorder
        recorder.rows = _core.write_calls(recorder.folder / "calls", recorder.name, self.columns)
        arms = [{**own, "first_error": self.said.get(own["arm"])} for own in self.counts if own["transactions"]]
        wall_ns = max(0, recorder.ended_ns - recorder.started_ns)
        recorder.reports.append({"reconnects": 0, "cpu_ns": 0, "wall_ns": wall_ns, "arms": arms})
