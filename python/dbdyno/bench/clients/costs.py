"""Cost of `select 1` by a client and by dbdyno's own client on the same server.

The two clients run alternately, because a machine's speed changes over time. Both costs are means, from which rates are
computed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.clients.conformance import FAILED, NOTED, SLICE_NS, CheckResult, ClientUnderTest
from dbdyno.bench.clients.process import ClientError

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm

SCRIPT = "select 1;"
TURN_NS = 250_000_000
ORDER = ("client", "own", "own", "client", "client", "own", "own", "client")
NAMES = {"client": f"cost of `{SCRIPT[:-1]}`", "own": "the same with dbdyno's own client"}


@dataclass
class ClientCost:
    """Number of transactions, the time that they took [ns], and the CPU time that the client used for them [ns]."""

    count: int = 0
    elapsed_ns: int = 0
    cpu_ns: int = 0

    def add(self, count: int, elapsed_ns: int, cpu_ns: int) -> None:
        """Add the count and times of another turn."""
        self.count += count
        self.elapsed_ns += elapsed_ns
        self.cpu_ns += cpu_ns

    def __str__(self) -> str:
        count, elapsed_ns = max(1, self.count), max(1, self.elapsed_ns)
        mean_us, cpu_us = elapsed_ns / count / 1e3, self.cpu_ns / count / 1e3
        return f"{count * 1e9 / elapsed_ns:,.0f}/s, mean {mean_us:.0f} us, {cpu_us:.0f} us of CPU each"


def costs(examined: ClientUnderTest, connection: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Yield both costs; for a client that cannot run `select 1`, the reason and the cost of dbdyno's own client."""
    from dbdyno import _core

    arm: LoadArm = {
        "name": "own",
        "connection": connection,
        "scripts": [{"name": "check", "text": SCRIPT}],
        "sessions": 1,
    }
    load, spent, broken = _core.Load({"seed": 7, "arms": [arm]}), {name: ClientCost() for name in NAMES}, ""
    try:
        with tempfile.TemporaryDirectory() as folder:
            try:
                examined.assign_job(SCRIPT)
                examined.run(length_ns=SLICE_NS)
            except ClientError as error:
                broken = error.message
            for at, who in enumerate(ORDER):
                if who == "own":
                    load.begin_block(Path(folder) / f"calls{at}", "b")
                    report = load.run(0, [(0, at, TURN_NS, None)])
                    load.abandon_block()
                    own = report["arms"][0]
                    spent[who].add(own["transactions"], own["busy_ns"], report["cpu_ns"])
                elif not broken:
                    try:
                        spent[who].add(*_turn(examined))
                    except ClientError as error:
                        broken = error.message
            load.disconnect(0)
    finally:
        examined.arm.end()
    yield CheckResult(NAMES["client"], FAILED if broken else NOTED, broken or str(spent["client"]))
    yield CheckResult(NAMES["own"], NOTED, str(spent["own"]))


def _turn(examined: ClientUnderTest) -> tuple[int, int, int]:
    """Run a turn of the client and return the number of transactions, the turn's time and its CPU time in ns."""
    process = examined.arm.process
    assert process is not None
    before = process.cpu_ns()
    end, _ = examined.run(length_ns=TURN_NS)
    return end.rows, end.elapsed_ns, process.cpu_ns() - before
