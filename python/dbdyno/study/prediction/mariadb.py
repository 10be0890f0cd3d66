"""A MariaDB arm: settings of its commits, and the device of InnoDB's log.

MariaDB does not time the waits of a session. The time of its log device is therefore the time of a commit minus the
round trip of the cheapest statement. If the script has statements of several sizes (`repeat('x', 4000)`), the time
added per KB is the slope of the commit's time over the size of the transaction's writes.

A server that was started with innodb_flush_log_at_trx_commit = 2 writes its log to the page cache
(innodb_log_file_buffering). A server on which it was set later still bypasses the page cache and writes to the device.

Limits: such a write to the device is not modelled; one session only, because with several a commit also waits for the
flushes of others; sizes must be in the statements' text, not in variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbdyno.base.errors import ModelError
from dbdyno.study.prediction.commits import device_by_commits
from dbdyno.study.prediction.device import LEAST, LogDevice
from dbdyno.study.prediction.modes import FASTEST
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.study.prediction.observation import Observation

    Floats = NDArray[np.float64]

LEAST_US = 0.5
FLUSH_US = 69.0
"""CPU time of a write and a sync of InnoDB's log [us], assumed for an arm whose commits do not wait for syncs."""
FLUSH_FROM = "a direct write of 4 KB and its fdatasync, AMD EPYC, ext4: 43 + 26 us at a load of 11"
WRITE_US = 6.0
"""CPU time of a write to the page cache [us], on a server started with innodb_flush_log_at_trx_commit = 2."""
LOGS = 2
"""Number of files that are synced at the same time: InnoDB's log and the binary log, which do not wait for each other.
"""
BLOCK_BYTES = 512
"""Block size of InnoDB's log [bytes]; a write consists of whole blocks."""
_PAYLOAD = re.compile(r"\brepeat\s*\(\s*'.'\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_SAME_LOG = ("fsync", "o_direct", "o_direct_no_fsync", "littlesync")
"""Values of innodb_flush_method that change the writes of data files, but not those of the log."""
_NO_EFFECT = (
    "server",
    "initdb",
    "device",
    "innodb_buffer_pool_size",
    "max_connections",
    "innodb_buffer_pool_load_at_startup",
)
_OFF = ("", "0", "off", "false")


def fixed_parameters() -> list[Parameter]:
    """Return the parameters in which MariaDB differs from PostgreSQL whatever its settings."""
    return [
        Parameter("wakes_all", False, MEASURED, "MariaDB: group_commit_lock wakes the sessions that it served"),
        Parameter("wal_writer_wake_kb", 0.0, DEFAULT, "MariaDB: a commit wakes no log writer"),
        Parameter("page_bytes", BLOCK_BYTES, DEFAULT, "MariaDB: block of the log"),
        Parameter("wal_writer_delay_ms", 1000.0, DEFAULT, "MariaDB: innodb_flush_log_at_timeout, 1 s"),
    ]


def as_parameters(settings: Mapping[str, str]) -> tuple[dict[str, bool | int | float], list[str]]:
    """Return model parameters for server settings, and a sentence for each setting that the model does not support."""
    found: dict[str, bool | int | float] = {}
    notes = []
    for name, text in settings.items():
        value = text.strip().lower()
        if name == "innodb_flush_log_at_trx_commit":
            found |= {"synchronous_commit": value != "0", "commit_syncs": value in ("1", "3")}
            if value == "2":
                found["flush_us"] = WRITE_US
        elif name == "log_bin":
            found["binlog"] = value not in _OFF
        elif name == "sync_binlog":
            found["binlog_sync_every"] = int(value or 0)
        elif name == "innodb_flush_method" and value in _SAME_LOG:
            continue
        elif name not in _NO_EFFECT and not name.startswith("performance_schema"):
            notes.append(f"{name} is not in the model: its effect is not predicted.")
    return found, notes


def syncs_at_commit(settings: Mapping[str, str]) -> bool:
    """Return True if commits of a server with these settings wait for a sync of the log."""
    return settings.get("innodb_flush_log_at_trx_commit", "1").strip() in ("1", "3")


def waits_for_syncs(observation: Observation) -> bool:
    """Return True if the commits of an arm wait for syncs of the log."""
    return (
        syncs_at_commit(observation.settings)
        and any(observation.steps.changes)
        and any(observation.calls["kind"] == "commit")
    )


def cpu_us(
    observation: Observation,
    client_us: float,
    one_core_us: list[float] | None,
    sized_us: Mapping[int, Floats],
) -> list[float]:
    """Return the CPU time of each statement at the server [us].

    A round trip on one core consists of the CPU time of both sides. If it is not known which round trips were on one
    core, the fastest ones are used. A commit without its flush is assumed to cost as much as the cheapest statement.
    """
    import numpy as np

    steps = observation.steps
    times = []
    for at, (statement, kind) in enumerate(zip(steps.statements, steps.kinds, strict=True)):
        own = sized_us.get(at, observation.elapsed_us(statement, kind))
        if kind == "commit" or not len(own):
            times.append(math.nan)
        else:
            times.append(one_core_us[at] if one_core_us else float(np.quantile(own, FASTEST)))
    least = min((us for us in times if math.isfinite(us)), default=client_us + LEAST_US)
    return [max((us if math.isfinite(us) else least) - client_us, LEAST_US) for us in times]


def payload_bytes(statement: str) -> int:
    """Return the size of the text that a statement writes [bytes], if the statement specifies it, else 0."""
    return sum(int(size) for size in _PAYLOAD.findall(statement))


def log_bytes(observation: Observation, default: float) -> list[float]:
    """Return the log of each statement [bytes]: its own text, and an equal part of the transaction's remaining log."""
    steps = observation.steps
    writes = sum(each for each, changes in zip(steps.per_transaction, steps.changes, strict=True) if changes)
    own = [float(payload_bytes(text)) if changes else 0.0 for text, changes in _changing(observation)]
    texts = sum(size * each for size, each in zip(own, steps.per_transaction, strict=True))
    known = writes and math.isfinite(observation.wal_bytes)
    rest = max(observation.wal_bytes - texts, 0.0) / writes if known else default
    return [size + rest if changes else 0.0 for size, changes in zip(own, steps.changes, strict=True)]


def _changing(observation: Observation) -> list[tuple[str, bool]]:
    return list(zip(observation.steps.statements, observation.steps.changes, strict=True))


def device_of_commits(observation: Observation, flush_us: float, default_bytes: float) -> LogDevice | None:
    """Return the log device, from the time of commits minus that of a round trip; None if commits wait for no sync.

    Raises:
        ModelError: The arm has several sessions, or no statement that only makes a round trip.
    """
    import numpy as np

    settings = observation.settings
    commits = np.flatnonzero(observation.calls["kind"] == "commit")
    if not waits_for_syncs(observation) or len(commits) < LEAST:
        return None
    if observation.sessions != 1:
        raise ModelError(
            "a MariaDB machine is calibrated on one session: with several, commits wait for the flushes of others",
            where=observation.arm.name,
            next_step="choose an arm with sessions = 1",
        )
    if settings.get("log_bin", "").strip().lower() not in _OFF:
        raise ModelError(
            "a MariaDB machine is calibrated without a binary log: with it a commit has two syncs",
            where=observation.arm.name,
            next_step="choose an arm without log_bin",
        )
    if not len(np.flatnonzero(observation.calls["kind"] == "begin")):
        raise ModelError(
            "the script has no statement, such as begin, that costs only a round trip",
            where=observation.arm.name,
            next_step="put the statements between begin and commit",
        )
    kb = _log_kb(observation, commits, log_bytes(observation, default_bytes))
    return device_by_commits(observation, commits, kb, flush_us, LOGS)


def _log_kb(observation: Observation, commits: NDArray[np.int64], by_statement: list[float]) -> Floats:
    """Return the log that each commit flushes [KB]: that of its transaction, and half a block on either side."""
    import numpy as np

    sizes = dict(zip(observation.steps.statements, by_statement, strict=True))
    calls = observation.calls
    own = np.array([sizes.get(str(text), 0.0) for text in calls["statement"]]) * (calls["kind"] == "exec")
    sums = np.concatenate([[0.0], np.cumsum(own)])
    # Between a commit and the one before it in the order of the rows, which is by session and time.
    before = np.concatenate([[0], commits[:-1]])
    return np.asarray((sums[commits] - sums[before] + BLOCK_BYTES) / 1024.0, dtype=np.float64)
