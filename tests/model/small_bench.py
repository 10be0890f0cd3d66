"""A bench that runs the specification of a claim or map at a small size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dbdyno.model.claims.bench import Arm, Bench, Evidence

TRANSACTIONS, SESSIONS, SCAN_BYTES = 20, 20, 128 << 20


class SmallBench(Bench):
    """Bench with few transactions and sessions and short scans, which shows whether a claim can be measured, not
    whether it holds."""

    @contextlib.contextmanager
    def run(self, machine: str, arms: Sequence[Arm], *, transactions: int, warmup: int = 50) -> Iterator[Evidence]:
        few = min(transactions, TRANSACTIONS)
        with super().run(machine, [_small(arm) for arm in arms], transactions=few, warmup=min(warmup, 2)) as evidence:
            yield evidence


def _small(arm: Arm) -> Arm:
    workload = dict(arm.workload)
    if workload["kind"] == "scan-jobs":
        workload["bytes"] = min(workload["bytes"], SCAN_BYTES)
    return replace(arm, sessions=min(arm.sessions, SESSIONS), workload=workload)
