"""Runs of a modelled PostgreSQL: a machine with a section [postgres], a load, and the result.

    outcome = simulate(machine_toml, sessions=8, scripts=scripts)
    outcome.quantile_ns(0.99), outcome.throughput_per_s

Several replications, each with its own random numbers, are combined; the same seed gives the same result on every
machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.base.postgres_types import PostgresLoad, PostgresOutcome, PostgresScript

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 20_261
TRANSACTIONS = 12_000
"""Number of transactions in a replication, over all sessions."""
WARMUP = 1_500
REPLICATIONS = 2
BLOCKS_MOST = 500_000
"""Number of blocks read in a replication above which the replication runs fewer transactions."""
LEAST = 300
LIMIT_S = 900.0
"""Maximum virtual time of a replication [s]; it then ends with the transactions completed so far."""


@dataclass(frozen=True)
class SimulationResult:
    """Result of a load that ran on a modelled PostgreSQL.

    Attributes:
        latencies_ns: Time of each transaction [ns], sorted.
        throughput_per_s: Transactions a second.
        waits_ns: Time that server processes wait per transaction [ns], by type and name of the wait event.
        server_cpu_ns: CPU time of the server's processes per transaction [ns].
        client_cpu_ns: CPU time of the client per transaction [ns].
        cores: Share of time in which the cores are busy.
        device: Share of time in which the log's device is busy; if it can do several syncs at once, their mean number,
            at most 1.
        device_ns: Mean time of a flush at the device [ns]; 0 if there was no flush.
        commits_per_flush: Commits that share a flush; 0 if there was no flush.
        sync_ns: Mean time that the flushing process waits for a sync of the log [ns]; 0 if there was no sync.
        events: Number of events that were simulated.
        read_ns: Mean time of a wait for a read of the data files [ns]; 0 if nothing was read.
        data: Share of time in which the data files' device is busy; 0 if nothing was read.
    """

    latencies_ns: NDArray[np.uint64]
    throughput_per_s: float
    waits_ns: dict[tuple[str, str], float]
    server_cpu_ns: float
    client_cpu_ns: float
    cores: float
    device: float
    device_ns: float
    commits_per_flush: float
    sync_ns: float
    events: int
    read_ns: float = 0.0
    data: float = 0.0

    def quantile_ns(self, q: float) -> float:
        """Return a quantile of the transactions' times [ns]."""
        import numpy as np

        return float(np.quantile(self.latencies_ns, q))

    @property
    def mean_ns(self) -> float:
        """Return the mean of the transactions' times [ns]."""
        return float(self.latencies_ns.mean())


def simulate(
    machine: str,
    *,
    sessions: int,
    scripts: Sequence[PostgresScript] = (),
    settings: Mapping[str, str] | None = None,
    seed: int = SEED,
    replications: int = REPLICATIONS,
    transactions: int = TRANSACTIONS,
) -> SimulationResult:
    """Run a load on a machine (TOML text); without scripts, the machine's own scripts are run.

    Raises:
        ModelError: The machine, a setting or a script is not valid.
    """
    from dbdyno import _core

    load: PostgresLoad = {
        "sessions": sessions,
        "transactions": max(_fewer(transactions, machine), 40 * sessions),
        "warmup": max(_fewer(WARMUP, machine), 10 * sessions),
        "limit_s": LIMIT_S,
        "scripts": list(scripts),
    }
    outcomes = [
        _core.model_postgres({"machine": machine, "settings": settings or {}, "seed": seed + at, "load": load})
        for at in range(replications)
    ]
    return _together(outcomes)


def _fewer(transactions: int, machine: str) -> int:
    """Return `transactions`, or fewer if they would read too many blocks: a spill reads thousands of them."""
    if "count = " not in machine:
        return transactions
    blocks = _blocks(machine)
    return transactions if blocks * transactions <= BLOCKS_MOST else max(round(BLOCKS_MOST / blocks), LEAST)


def _blocks(machine: str) -> float:
    """Return the largest mean number of block waits per execution among the statements in the machine file."""
    import tomllib

    statements = tomllib.loads(machine).get("postgres", {}).get("statements", [])
    listed = statements["value"] if isinstance(statements, dict) else statements
    most = 0.0
    for statement in listed:
        counts = [own for own in statement.values() if isinstance(own, dict) and "count" in own]
        most = max(most, sum(n * share for own in counts for n, share in zip(own["count"], own["share"], strict=True)))
    return most


def _together(outcomes: Sequence[PostgresOutcome]) -> SimulationResult:
    import numpy as np

    all_ns = np.sort(np.concatenate([np.frombuffer(one["latencies_ns"], dtype="<u8") for one in outcomes]))
    done = max(sum(one["transactions"] for one in outcomes), 1)
    elapsed_ns = sum(one["elapsed_ns"] for one in outcomes)
    flushes = sum(one["flushes"] for one in outcomes)
    waits: dict[tuple[str, str], float] = {}
    for wait in (wait for one in outcomes for wait in one["waits"]):
        event = (wait["event_type"], wait["event"])
        waits[event] = waits.get(event, 0.0) + wait["elapsed_ns"] / done
    syncs = [wait for one in outcomes for wait in one["waits"] if wait["event"] == "WALSync"]
    reads = [wait for one in outcomes for wait in one["waits"] if wait["event"] == "DataFileRead"]
    stations = [one["stations"] for one in outcomes]
    served = sum(own[1]["completions"] for own in stations)
    return SimulationResult(
        latencies_ns=all_ns,
        throughput_per_s=done * 1e9 / max(elapsed_ns, 1),
        waits_ns=waits,
        server_cpu_ns=sum(one["server_cpu_ns"] for one in outcomes) / done,
        client_cpu_ns=sum(one["client_cpu_ns"] for one in outcomes) / done,
        cores=sum(own[0]["utilisation"] for own in stations) / len(stations),
        device=min(sum(own[1]["utilisation"] * own[1]["servers"] for own in stations) / len(stations), 1.0),
        device_ns=sum(own[1]["sojourn_ns"] * own[1]["completions"] for own in stations) / served if served else 0.0,
        commits_per_flush=sum(one["commits"] for one in outcomes) / flushes if flushes else 0.0,
        sync_ns=sum(wait["elapsed_ns"] for wait in syncs) / max(sum(wait["count"] for wait in syncs), 1),
        events=sum(one["events"] for one in outcomes),
        read_ns=sum(wait["elapsed_ns"] for wait in reads) / max(sum(wait["count"] for wait in reads), 1),
        data=sum(one["data"]["utilisation"] for one in outcomes if "data" in one) / len(outcomes),
    )
