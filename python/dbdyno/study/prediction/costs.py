"""CPU, delays and log volume of an arm's statements, derived from its measurements.

The CPU time of a server process outside its waits is known only per transaction. For each round trip, the CPU time to
start the client's idle core is subtracted. The rest is divided among the statements in proportion to the time of their
fast executions (the quantile `UNHURRIED`), which contain hardly any waiting. A round trip takes longer than its CPU
time; the remainder is its *delay* (wake-ups of server and client, other programs on the cores), which is stored as a
measured distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbdyno.study.prediction import mariadb
from dbdyno.study.prediction.commits import flush_cpu_us, needs_commits
from dbdyno.study.prediction.modes import (
    FASTEST,
    Modes,
    modes_by_share,
    one_core_us,
    statement_modes,
    two_core_share,
)
from dbdyno.study.prediction.observation import MARIADB, SYNC, WRITE, Observation
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, measured_parameter
from dbdyno.study.prediction.sizes import mean_kb, per_kb

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

AS_MUCH = "assumed: the same as to start an idle core"
COLD_US = 8.0
"""Additional CPU time of a statement if the server process's core was idle or other processes ran there [us]."""
COLD_FROM = (
    "PostgreSQL 15, many sessions on two cores against one on one core: pgbench -S on an Intel Xeon, 9 to 12 us; live"
    " arms on an AMD EPYC, 8 to 10 us for selects, 4 to 8 us for statements of TPC-B and of commits"
)
CLIENT_COLD_US = 3.0
"""Additional CPU time of a client's thread for a reply if others ran on its core [us]."""
CLIENT_COLD_FROM = "dbdyno's load on an Intel Xeon: its CPU time in the arms of two runs; 0 was worse"
MOST_ON_TWO = 0.9
"""Largest share of round trips over two cores that is assumed if the times do not show the share."""
UNHURRIED = 0.2
"""Quantile of a statement's times that determines its share of the CPU time."""
CLIENT_SHARE = 0.53
"""CPU time of the client per round trip, as a share of the fastest round trip on one core."""
CLIENT_LEAST = 0.25
"""Minimum share of the client's own work in its CPU time for a round trip."""
CLIENT_INSIDE = 0.62
"""Share of the client's CPU time that is within the timed part of the round trip."""
CLIENT_FROM = "half of the fastest round trip on one core, as in traces of selects on an Intel Xeon"
LEAST_US = 0.5
"""Minimum time of a statement and delay of a round trip [us]; smaller values are artefacts of dividing the time."""
LEAST = 30
"""Minimum number of measured times of a statement for computing quantiles."""
LITTLE_LOG = 0.125
"""Share of a statement's executions, those with the least log, from which its time without the log is computed."""
WRITE_PER_KB = 0.4
"""CPU time of a process to write and sync a KB of log [us]."""
WRITE_FROM = "PostgreSQL 15 on an Intel Xeon, ext4: 0.2 us/KB for the write, the same for the sync"
WRITES_DEFAULT = 300.0
"""Log volume that is assumed for a writing statement if the run did not measure it [bytes]."""


@dataclass(frozen=True)
class Costs:
    """Costs of an arm's statements.

    Attributes:
        cpu_us: CPU time of each statement at the server [us].
        system: Share of that CPU time that is spent in the kernel.
        wal_bytes: Log that each statement writes [bytes].
        insert: CPU time of a statement for each KB of log that it writes [us/KB].
        flush_us: CPU time of a flush, without the part that depends on its size [us].
        write: CPU time of a flush for each KB of log [us/KB].
        whole_flush_us: CPU time of a flush of mean size [us].
        wake: CPU time of a server's process to start an idle core when it wakes its client, once per round trip.
        cold: CPU time of a server's process to load its data into the CPU cache again after its core was idle or other
            processes ran.
        server: CPU time of a transaction outside of its waits.
        client: CPU time of the client for a round trip.
        delays_us: Delays of round trips, in order within each session; empty if they cannot be separated from CPU time.
        memory: Rank correlation of consecutive delays.
        over_two_cores: True if the delays are of round trips over two cores only.
    """

    cpu_us: list[float]
    system: float
    wal_bytes: list[float]
    insert: Parameter
    flush_us: Parameter
    write: Parameter
    whole_flush_us: float
    wake: Parameter
    cold: Parameter
    server: Parameter
    client: Parameter
    delays_us: Floats
    memory: float
    over_two_cores: bool = False


def costs_of(observation: Observation) -> Costs:
    """Return the costs of an arm's statements."""
    by_commits = needs_commits(observation)
    flush, write = _flush(observation), _write_per_kb(observation, by_commits)
    whole_us = flush.value
    flush = _reduce(flush, write.value * mean_kb(observation))
    server = measured_parameter(
        "server_us", _outside_us(observation), "CPU of the server's processes outside of waits, blocks", "us"
    )
    client = measured_parameter(
        "client_us",
        [ns / 1e3 for ns in observation.client_ns],
        "CPU of the load's threads for a round trip",
        "us",
    )
    insert, sizes_kb, sized_us = _per_kb(observation)
    modes = statement_modes(observation, sized_us)
    known = _client_and_wake(observation, modes, client)
    if by_commits and modes is None:
        own_us, share = _client_share(observation, sized_us, client.value, known[1].value)
        modes = modes_by_share(observation, sized_us, share)
        known = replace(client, value=own_us, low=own_us, high=own_us, how=CLIENT_FROM), known[1]
    client, wake = known
    trips = sum(observation.steps.per_transaction) * (
        two_core_share(modes, observation.steps.per_transaction) if modes else 1.0
    )
    if by_commits or (observation.engine == MARIADB and mariadb.waits_for_syncs(observation)):
        one_core = one_core_us(modes) if modes else None
        cpu = mariadb.cpu_us(observation, client.value * CLIENT_INSIDE, one_core, sized_us)
        wakes_us = (wake.value + COLD_US) * trips
        known_us = math.fsum(_per_transaction(observation, cpu)) + wakes_us + insert.value * sizes_kb
        # A process that returns from a sync also finds its core idle.
        flush = flush_cpu_us(observation, known_us + COLD_US)
        whole_us = flush.value + COLD_US
        flush = _reduce(flush, write.value * mean_kb(observation))
        cold = Parameter("cold_us", COLD_US, DEFAULT, COLD_FROM, unit="us")
    elif modes is None:
        cold = replace(wake, key="cold_us", source=DEFAULT, how=AS_MUCH)
        wakes_us = (wake.value + cold.value) * trips
        cpu = _shared_out(observation, max(server.value - insert.value * sizes_kb - wakes_us, 0.0), whole_us)
    else:
        cold = Parameter("cold_us", COLD_US, DEFAULT, COLD_FROM, unit="us")
        cpu = [max(us - client.value * CLIENT_INSIDE, LEAST_US) for us in one_core_us(modes)]
    reload_us = cold.value + (CLIENT_COLD_US if modes else 0.0)
    delays = _delays(observation, cpu, client.value * CLIENT_INSIDE + reload_us, modes)
    return Costs(
        cpu,
        _system(observation),
        _wal(observation),
        insert,
        flush,
        write,
        whole_us,
        wake,
        cold,
        server,
        client,
        delays,
        _memory(delays),
        modes is not None,
    )


def _per_transaction(observation: Observation, cpu_us: list[float]) -> list[float]:
    """Return the CPU time per transaction of each statement [us]."""
    return [us * each for us, each in zip(cpu_us, observation.steps.per_transaction, strict=True)]


def _client_and_wake(
    observation: Observation, modes: list[Modes | None] | None, client: Parameter
) -> tuple[Parameter, Parameter]:
    """Return the client's CPU time for a round trip on one core, and the CPU time to start an idle core.

    The client's own work is a share of the fastest round trip on one core. Any further CPU time of the client is used
    in round trips over two cores: to start an idle core, and to load its data into the cache again. A server process is
    assumed to need the same time for a start. If the modes (one or two cores) of round trips are not known, the time
    measured before the blocks is used for a start.
    """
    if modes is None:
        wake = _wake(observation)
        if observation.sessions > 1:
            return client, wake
        own = [max(us - wake.value, client.value * CLIENT_LEAST) for us in (client.value, client.low, client.high)]
        return replace(client, value=own[0], low=own[1], high=own[2]), wake
    share = two_core_share(modes, observation.steps.per_transaction)
    own_us = CLIENT_SHARE * min(one_core_us(modes))
    spent = [
        max((us - own_us) / share - CLIENT_COLD_US, 0.0) if share else 0.0
        for us in (client.value, client.low, client.high)
    ]
    how = "CPU of the client beyond that of a round trip on one core, per round trip over two cores"
    wake = Parameter("wake_us", spent[0], MEASURED, how, spent[1], spent[2], "us")
    return Parameter("client_us", own_us, MEASURED, CLIENT_FROM, unit="us"), wake


def _client_share(
    observation: Observation, sized_us: Mapping[int, Floats], client_us: float, wake_us: float
) -> tuple[float, float]:
    """Return the client's own CPU time for a round trip [us], and the share of round trips over two cores.

    The times of statements do not show the share. But any CPU time that the client used beyond its own work is
    attributed to round trips over two cores: each starts a core, and loads the client's data into the cache again.
    """
    import numpy as np

    steps = observation.steps
    fastest = []
    for at, (statement, kind) in enumerate(zip(steps.statements, steps.kinds, strict=True)):
        times_us = sized_us.get(at, observation.elapsed_us(statement, kind))
        if kind != "commit" and len(times_us):
            fastest.append(float(np.quantile(times_us, FASTEST)))
    own_us = min(CLIENT_SHARE * min(fastest, default=math.inf), client_us)
    return own_us, min((client_us - own_us) / (wake_us + CLIENT_COLD_US), MOST_ON_TWO) if wake_us else 0.0


def _outside_us(observation: Observation) -> list[float]:
    """Return, by block, the CPU time of a transaction outside its waits [us]."""
    found = []
    for block, report in zip(observation.measures.blocks, observation.reports, strict=True):
        if report["transactions"]:
            inside = observation.cpu_in_waits_ns.get(block.index, 0.0)
            found.append((report["on_cpu_ns"] - inside) / report["transactions"] / 1e3)
    return found


def _system(observation: Observation) -> float:
    """Return the share of the server's CPU time that is spent in the kernel."""
    user, system = (sum(report[name] for report in observation.reports) for name in ("user_ns", "system_ns"))
    return system / (user + system) if user + system else 0.5


def _flush(observation: Observation) -> Parameter:
    """Return the CPU time of a flush, which is spent inside the waits for write and sync."""
    if observation.engine == MARIADB:
        return Parameter("flush_us", mariadb.FLUSH_US, DEFAULT, mariadb.FLUSH_FROM, unit="us")
    syncs = len(observation.waits_for(SYNC)["elapsed_ns"])
    writes = observation.waits_for(WRITE)["elapsed_ns"]
    write_us = float(writes.sum()) / 1e3 / max(syncs, 1)
    if not syncs:
        return Parameter("flush_us", 15.0, "default", "this arm flushed nothing", unit="us")
    if not observation.cpu_in_waits_ns:
        how = "the write of the log; looks do not see CPU inside the sync; it counts as the device's"
        return Parameter("flush_us", write_us, MEASURED, how, unit="us")
    by_block = observation.waits_for(SYNC)["block"]
    spent = _flush_cpu_ns(observation)
    values = [ns / 1e3 / max(int((by_block == block).sum()), 1) for block, ns in spent.items()]
    return measured_parameter("flush_us", values, "CPU inside the waits of a flush, blocks", "us")


def _flush_cpu_ns(observation: Observation) -> Mapping[int, float]:
    """Return, by block, the CPU time used inside the waits for the write and the sync of the log [ns].

    If there are no waits for data files, or CPU is not known by event, this is the CPU time inside all waits.
    """
    if not len(observation.io.call) or not observation.cpu_in_wait_ns:
        return observation.cpu_in_waits_ns
    events = [observation.cpu_in_wait_ns.get(event, {}) for event in (SYNC, WRITE)]
    return {block: sum(own.get(block, 0.0) for own in events) for block in observation.cpu_in_waits_ns}


def _write_per_kb(observation: Observation, by_commits: bool) -> Parameter:
    """Return the CPU time of a flush per KB of log, from the times of writes, which go to the page cache.

    Commit times do not separate it from the time of the device; then a default is used.
    """
    if by_commits:
        return Parameter("flush_us_per_kb", WRITE_PER_KB, DEFAULT, WRITE_FROM, unit="us/KB")
    found = per_kb(observation, WRITE)
    if found is None:
        return Parameter("flush_us_per_kb", 0.0, DEFAULT, "sizes do not differ in this arm: it is included in flush_us")
    how = "slope of the write over the commit's log size"
    return Parameter("flush_us_per_kb", found[0], MEASURED, how, found[1], found[2], "us/KB")


def _reduce(flush: Parameter, us: float) -> Parameter:
    """Return a parameter and its interval minus a time [us]; values below 0 become 0."""
    if not us:
        return flush
    value, low, high = (max(one - us, 0.0) for one in (flush.value, flush.low, flush.high))
    return replace(flush, value=value, low=low, high=high)


def _wake(observation: Observation) -> Parameter:
    """Return the CPU time to wake an idle core, as measured before the run's blocks."""
    found = [b.canaries["wake_ns"] / 1e3 for b in observation.measures.blocks if "wake_ns" in b.canaries]
    if not found:
        how = "the run did not measure it: it is included in the costs of statements"
        return Parameter("wake_us", 0.0, DEFAULT, how, unit="us")
    return measured_parameter("wake_us", found, "CPU time to start an idle core, before blocks", "us")


def _per_kb(observation: Observation) -> tuple[Parameter, float, dict[int, Floats]]:
    """Return the CPU time per KB of log, the mean log of a transaction [KB], and statement times without that CPU time.

    The CPU time per KB is the slope of a statement's time over the log that it writes, which is known if the script
    chooses the size at random. If it is not known, the mean log is 0 and there are no times. The times [us] are by the
    number of the statement, and only of executions with little log.
    """
    import numpy as np

    from dbdyno.study.prediction.slopes import slope

    none = Parameter("insert_us_per_kb", 0.0, "default", "sizes do not differ; costs of statements include it")
    sized = [step for script in observation.steps.scripts for step in script["steps"] if "wal_bytes" in step]
    if not sized:
        return none, 0.0, {}
    calls = observation.calls
    name = observation.steps.statements[sized[0]["statement"]]
    own = np.flatnonzero((calls["kind"] == "exec") & (calls["statement"] == name))
    commits = np.flatnonzero((calls["kind"] == "commit") & (calls["redo_bytes"] > 0))
    after = commits[np.minimum(np.searchsorted(commits, own), len(commits) - 1)] if len(commits) else own[:0]
    if not len(after):
        return none, 0.0, {}
    good = (after > own) & (calls["session"][after] == calls["session"][own])
    kb = calls["redo_bytes"][after[good]] / 1024.0
    times_us = calls["elapsed_ns"][own[good]] / 1e3
    found = slope(kb, times_us)
    if found is None:
        return none, 0.0, {}
    per_kb, low, high = found
    how = "slope of a statement's time over its log size"
    parameter = Parameter("insert_us_per_kb", per_kb, MEASURED, how, low, high, "us/KB")
    # Times vary in proportion to the log, so a large one minus its mean can be shorter than any statement.
    small = kb <= np.quantile(kb, LITTLE_LOG)
    without_us = np.maximum(times_us[small] - per_kb * kb[small], LEAST_US)
    return parameter, float(kb.mean()), {sized[0]["statement"]: without_us}


def _shared_out(observation: Observation, server_us: float, flush_us: float) -> list[float]:
    """Return the CPU time of each statement: a transaction's CPU time divided in proportion to its fast executions."""
    import numpy as np

    steps = observation.steps
    weights = []
    for statement, kind in zip(steps.statements, steps.kinds, strict=True):
        times = observation.elapsed_us(statement, kind)
        weights.append(float(np.quantile(times, UNHURRIED)) if len(times) else math.nan)
    plain = [weight for weight, kind in zip(weights, steps.kinds, strict=True) if kind != "commit" and weight > 0]
    least = min(plain, default=1.0)
    syncs = observation.waits_for(SYNC)["elapsed_ns"]
    sync_us = float(np.quantile(syncs, UNHURRIED)) / 1e3 + flush_us if len(syncs) else 0.0
    for at, kind in enumerate(steps.kinds):
        if kind == "commit":
            # A commit's time is mostly the device's; what is left counts at least as the cheapest statement.
            weights[at] = max(weights[at] - sync_us, least) if math.isfinite(weights[at]) else least
        elif not math.isfinite(weights[at]):
            weights[at] = least
    total = sum(weight * each for weight, each in zip(weights, steps.per_transaction, strict=True))
    return [server_us * weight / total for weight in weights]


def _wal(observation: Observation) -> list[float]:
    """Return the log of each statement [bytes]: a transaction's log divided equally among the writing statements."""
    if observation.engine == MARIADB:
        return mariadb.log_bytes(observation, WRITES_DEFAULT)
    steps = observation.steps
    writes = sum(each for each, changes in zip(steps.per_transaction, steps.changes, strict=True) if changes)
    each = observation.wal_bytes / writes if writes and math.isfinite(observation.wal_bytes) else WRITES_DEFAULT
    return [each if changes else 0.0 for changes in steps.changes]


def _delays(
    observation: Observation, cpu_us: list[float], client_us: float, modes: list[Modes | None] | None
) -> Floats:
    """Return the delays of round trips that have no lock wait and no flush [us], in order within each session.

    If the modes are known, only round trips that use two cores have a delay.
    """
    import numpy as np

    steps = observation.steps
    locked = {step["statement"] for script in steps.scripts for step in script["steps"] if "lock" in step}
    calls = observation.calls
    spent = np.full(len(calls["elapsed_ns"]), np.nan)
    for at, (statement, kind) in enumerate(zip(steps.statements, steps.kinds, strict=True)):
        waits = (at in locked and observation.sessions > 1) or (kind == "transaction" and steps.writes)
        if kind == "commit" or waits or (steps.changes[at] and kind == "exec" and _has_wal_bytes(observation, at)):
            continue
        own = calls["kind"] == kind
        if kind != "transaction":
            own &= calls["statement"] == statement
        if modes is not None and (mode := modes[at]) is not None:
            own &= calls["elapsed_ns"] / 1e3 >= mode.limit_us
        spent[own] = cpu_us[at] + client_us
    known = np.isfinite(spent)
    if int(known.sum()) < LEAST:
        return np.array([])
    found: Floats = np.maximum(calls["elapsed_ns"][known] / 1e3 - spent[known], LEAST_US)
    return found


def _has_wal_bytes(observation: Observation, statement: int) -> bool:
    steps = (step for script in observation.steps.scripts for step in script["steps"])
    return any("wal_bytes" in step and step["statement"] == statement for step in steps)


def _memory(delays: Floats) -> float:
    """Return the rank correlation of consecutive delays, limited to 0 to 0.95."""
    import numpy as np

    if len(delays) < LEAST:
        return 0.0
    ranks = np.argsort(np.argsort(delays)).astype(np.float64)
    found = float(np.corrcoef(ranks[:-1], ranks[1:])[0, 1])
    return min(max(found, 0.0), 0.95) if math.isfinite(found) else 0.0
