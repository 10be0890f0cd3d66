"""Answers of queueing theory compared with those of the simulation, and explanations of their differences.

    cores         mean value analysis of a closed network: cores as a queue and a delay (Seidmann 1987)
    flushes       group commit of a closed loop as a Markov chain on the size of a batch; the pause between two commits
                  contains the cores, found by bisection
    each alone    the time of a commit if each had a flush of its own: M/G/1 (Pollaczek and Khinchine)

None of these models has row locks; for a script that locks rows there is only the simulation, and the upper bound that
the row locks set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.base.json_types import JsonObject
from dbdyno.model.postgres import SimulationResult, simulate
from dbdyno.study.prediction.compare import CalibratedMachine

SCHEMA = 1
HALVINGS = 40
CHAIN_MOST = 256
"""Largest number of sessions for which the chain is computed."""
CLOSE = 0.05
BUSY = 0.7
"""Busy share of the cores above which busy cores explain a difference between the two answers."""


@dataclass(frozen=True)
class Demands:
    """Demands of a transaction on the resources of a machine [us].

    Attributes:
        cpu: CPU time of server and client.
        delay: Time that is neither CPU nor flush: delays of round trips, and the pause between transactions.
        flush: Time of a flush, including its CPU time; 0 if commits do not wait for flushes.
        cores: Number of cores.
        locks: True if the script locks rows that sessions share.
        spread: Squared coefficient of variation of a flush.
        others: Cores that other programs use.
        starts: Part of `cpu` that is used to wake idle cores; it is not used while all cores are busy.
    """

    cpu: float
    delay: float
    flush: float
    cores: int
    locks: bool
    spread: float
    others: float = 0.0
    starts: float = 0.0

    def bound(self, sessions: int) -> float:
        """Return the throughput that no schedule can exceed [1/us]; it ignores delays and wake-up CPU time."""
        least = self.cpu - self.starts
        return min(sessions / (least + self.flush), self.cores / least)


def mva(cpu: float, cores: int, delay: float, sessions: int) -> tuple[float, float]:
    """Return, by mean value analysis, the throughput [1/us] and the time at the cores with their queue [us]."""
    queue, fixed = cpu / cores, cpu * (cores - 1) / cores
    waiting, rate, time = 0.0, 0.0, cpu
    for number in range(1, sessions + 1):
        time = queue * (1 + waiting)
        rate = number / (time + fixed + delay)
        waiting = rate * time
    return rate, time + fixed


def chain(sessions: int, pause: float, flush: float) -> tuple[float, float]:
    """Return the commits [1/us] and the mean batch size in a closed loop where commits share flushes.

    During a flush, each of the other sessions reaches its next commit with probability 1 - exp(-flush / pause); these
    sessions are the next batch. If there are none, the next commit is flushed alone.
    """
    back = 1.0 - math.exp(-flush / pause) if pause > 0 else 1.0
    back = min(back, 1 - 1e-12)
    share = [0.0] + [1.0 / sessions] * sessions
    for _ in range(400):
        following = [0.0] * (sessions + 1)
        for batch in range(1, sessions + 1):
            term = (1 - back) ** (sessions - batch)
            for count in range(sessions - batch + 1):
                following[max(count, 1)] += share[batch] * term
                term *= (sessions - batch - count) / (count + 1) * back / (1 - back)
        moved = max(abs(a - b) for a, b in zip(share, following, strict=True))
        share = following
        if moved < 1e-10:
            break
    commits = sum(share[batch] * batch for batch in range(1, sessions + 1))
    empty = [(1 - back) ** (sessions - batch) for batch in range(sessions + 1)]
    cycle = sum(share[batch] * (flush + empty[batch] * pause / sessions) for batch in range(1, sessions + 1))
    return commits / cycle, commits


def closed_loop(demands: Demands, sessions: int) -> tuple[float, float]:
    """Return throughput [1/us] and a transaction's time without its pause [us], for this number of sessions."""
    if not demands.flush:
        rate, time = mva(demands.cpu, demands.cores, demands.delay, sessions)
        return rate, time
    # The more commits, the longer the queue for the cores, and the fewer commits: one rate fits both.
    low, high = 0.0, demands.cores / demands.cpu
    for _ in range(HALVINGS):
        rate = (low + high) / 2
        found, _ = chain(sessions, _at_cores(demands, sessions, rate) + demands.delay, demands.flush)
        low, high = (rate, high) if found > rate else (low, rate)
    return rate, sessions / rate - demands.delay


def _at_cores(demands: Demands, sessions: int, rate: float) -> float:
    """Return the time of a transaction at the cores including their queue [us], at a throughput [1/us]."""
    busy = rate * demands.cpu / demands.cores * (sessions - 1) / sessions
    return demands.cpu / demands.cores / (1 - busy) + demands.cpu * (demands.cores - 1) / demands.cores


def time_of_own_flush(demands: Demands, rate: float) -> float:
    """Return the time of a commit if each commit had a separate flush [us]; infinite if the device is too slow."""
    busy = rate * demands.flush
    if busy >= 1:
        return math.inf
    return demands.flush * (1 + busy * (1 + demands.spread) / (2 * (1 - busy)))


def demands_of(machine: CalibratedMachine, simulation_result: SimulationResult) -> Demands:
    """Return the demands of the machine's own script; `simulation_result` must be for a single session."""
    values = {row["path"].removeprefix("postgres."): row["value"] for row in machine.machine.parameters}
    steps = [step for script in values.get("scripts") or [] for step in script["steps"]]
    cpu = (simulation_result.server_cpu_ns + simulation_result.client_cpu_ns) / 1e3
    cycle = 1e6 / simulation_result.throughput_per_s
    flush = 0.0
    if simulation_result.commits_per_flush:
        page_kb = float(values.get("page_bytes") or 0.0) / 1024.0
        own = float(values.get("flush_us") or 0.0) + page_kb * float(values.get("flush_us_per_kb") or 0.0)
        flush = simulation_result.device_ns / 1e3 + own
        cpu -= own
    return Demands(
        cpu=cpu,
        delay=max(cycle - cpu - flush, 0.0),
        flush=flush,
        cores=int(values.get("cores") or 1),
        locks=any(step.get("lock") for step in steps),
        spread=0.0,
        others=float(values.get("others") or 0.0),
        starts=float(values.get("wake_us") or 0.0) * _round_trips(values.get("scripts") or []),
    )


def _round_trips(scripts: Sequence[JsonObject]) -> float:
    """Return the mean number of round trips of a transaction."""
    weights = sum(script["weight"] for script in scripts)
    return sum(script["weight"] * len(script["steps"]) for script in scripts) / weights if weights else 0.0


def analyse(machine: CalibratedMachine, levels: Sequence[int]) -> JsonObject:
    """Return the page that compares analytic answers with the simulation for each number of sessions."""
    one = simulate(machine.machine.toml, sessions=1)
    demands = demands_of(machine, one)
    rows, laws = [], []
    for sessions in levels:
        outcome = one if sessions == 1 else simulate(machine.machine.toml, sessions=sessions)
        rows.append(_row(demands, sessions, outcome))
        laws += _laws(demands, sessions, outcome)
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "analysis",
        "title": f"Queueing theory compared with the simulation: {machine.machine.title}",
        "rows": rows,
        "laws": laws,
        "sentences": _sentences(demands, rows),
    }


def _row(demands: Demands, sessions: int, outcome: SimulationResult) -> JsonObject:
    answered = not demands.flush or sessions <= CHAIN_MOST
    rate = closed_loop(demands, sessions)[0] * 1e6 if answered else math.nan
    commit_us = time_of_own_flush(demands, outcome.throughput_per_s / 1e6) if demands.flush else math.nan
    return {
        "sessions": sessions,
        "bound": demands.bound(sessions) * 1e6,
        "analytic": rate,
        "simulated": outcome.throughput_per_s,
        "difference": rate / outcome.throughput_per_s - 1,
        "cores": outcome.cores,
        "device": outcome.device,
        "alone_ns": commit_us * 1e3,
        "why": _reasons(demands, sessions, rate, outcome),
    }


def _reasons(demands: Demands, sessions: int, rate: float, outcome: SimulationResult) -> str:
    """Return the reasons for the difference between the two answers."""
    if not math.isfinite(rate):
        return "there is no analytic answer for so many sessions"
    off = rate / outcome.throughput_per_s - 1
    if abs(off) <= CLOSE:
        return "they agree"
    if off < 0 and sessions > 1 and demands.delay:
        return (
            "a process woken on a busy core needs no start; the queueing network counts the whole delay at every"
            " round trip"
        )
    waits = {name: ns for (_, name), ns in outcome.waits_ns.items()}
    if demands.locks and waits.get("transactionid", 0.0) > 0.02 * outcome.mean_ns:
        return "row locks, which no product-form network models"
    return _of_cores(demands, outcome)


def _of_cores(demands: Demands, outcome: SimulationResult) -> str:
    """Return how busy cores, or times that are not exponential, affect the analytic answer."""
    if outcome.cores <= BUSY:
        return "pauses and flushes are not exponential, as the network assumes"
    if demands.flush:
        return "a process must be on a core to end a flush: busy cores make flushes longer, which the chain leaves out"
    return "the scheduler's slices and the client's threads; the network takes exponential bursts in order"


def _laws(demands: Demands, sessions: int, outcome: SimulationResult) -> list[JsonObject]:
    """Return the operational laws for a result: the two sides of each, which must be equal for any distribution."""
    rate = outcome.throughput_per_s
    cpu = (outcome.server_cpu_ns + outcome.client_cpu_ns) / 1e9
    found = [
        (
            "utilisation",
            "busy cores = (throughput x CPU + other programs) / cores",
            outcome.cores,
            min((rate * cpu + demands.others) / demands.cores, 1.0),
        ),
        ("Little", "sessions >= throughput x time of a transaction", float(sessions), rate * outcome.mean_ns / 1e9),
    ]
    if outcome.commits_per_flush and outcome.device_ns:
        flow = rate / outcome.commits_per_flush * outcome.device_ns / 1e9
        found.append(("forced flow", "busy device = flushes per second x their time", outcome.device, flow))
    return [
        {"sessions": sessions, "law": law, "says": says, "left": left, "right": right}
        for law, says, left, right in found
    ]


def _sentences(demands: Demands, rows: Sequence[JsonObject]) -> list[str]:
    said = [
        f"A transaction needs {demands.cpu:.4g} us of CPU and {demands.flush:.4g} us of a flush;"
        f" {demands.delay:.4g} us are delays that do not depend on other sessions."
    ]
    known = [row for row in rows if math.isfinite(row["analytic"])]
    if known:
        worst = max(known, key=lambda row: abs(row["difference"]))
        said.append(
            f"The two answers differ by {worst['difference']:+.1%} at most, with {worst['sessions']} session(s):"
            f" {worst['why']}."
        )
    saturated = [row["sessions"] for row in rows if demands.flush and not math.isfinite(row["alone_ns"])]
    if saturated:
        said.append(
            f"Without group commit the device could not serve {saturated[0]} sessions or more at this throughput."
        )
    return said
