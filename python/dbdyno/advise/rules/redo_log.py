"""Rule: innodb_log_file_size compared with the checkpoint age."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.engines.mariadb.parts import Status
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import GIB, duration, setting_size, share, size
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, Rule

OLD = 0.7
"""Checkpoint age considered high, as a share of the maximum; at seven eighths every page must be written at once."""
HOUR_S = 3600.0
LEAST_FILLS = 2.0
_FLUSHED = "Innodb_buffer_pool_pages_flushed"


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if the log was nearly full when sampled, and fills within an hour at the mean rate."""
    status, log = facts.row_of(Status), facts.setting("innodb_log_file_size")
    names = ("innodb_checkpoint_age", "innodb_checkpoint_max_age", "innodb_os_log_written")
    age, most, written = (status.get(name) for name in names)
    if log is None or age is None or not most or not written or status.span_s <= 0:
        return
    full_s = most * status.span_s / written
    if age < OLD * most or written < LEAST_FILLS * most or full_s > HOUR_S:
        return
    wanted = min(HOUR_S * written / status.span_s, 16 * log.bytes, 64 * GIB)
    proposed = setting_size(max(wanted, 2 * log.bytes))
    yield Advice(
        f"the checkpoint age is {share(age / most)} of the allowed redo log, which fills in {duration(full_s)} at "
        f"{size(written / status.span_s)} a second",
        (
            Evidence("innodb_log_file_size", log.bytes, "bytes", "global variables"),
            Evidence("age of the checkpoint", age, "bytes", "global status, Innodb_checkpoint_age, one reading"),
            Evidence("largest allowed age", most, "bytes", "global status, Innodb_checkpoint_max_age"),
            Evidence("log written", written, "bytes", "global status, Innodb_os_log_written"),
            Evidence("statistics cover", status.span_s, "span", "global status, Uptime_since_flush_status"),
            Evidence("pages written", status.get(_FLUSHED.lower()), "count", f"global status, {_FLUSHED}"),
        ),
        "a page that changes often is written each time the log fills: a larger log means fewer writes, and writers do "
        "not stop at seven eighths of it; the time saved was not measured",
        (
            f"set global innodb_log_file_size = {_bytes(proposed)}  -- {proposed}; from MariaDB 10.9 "
            f"on, takes effect at once",
            f"-- and in the server's configuration: innodb_log_file_size = {proposed.removesuffix('B')}",
        ),
        subject="innodb_log_file_size",
    )


def _bytes(wanted: str) -> int:
    return int(wanted[:-2]) * 1024 ** (3 if wanted.endswith("GB") else 2)


RULE = Rule(
    name="redo_log",
    family="wal",
    title="A redo log that is nearly full",
    reads=(Setting, Status),
    condition="the checkpoint age is 70 % of what the log allows, the log was filled twice or more, and at the mean "
    "rate it fills within an hour",
    expects="writes of pages, and stalls for them",
    risk="recovery after a crash reads up to the whole log",
    source="MariaDB documentation, InnoDB Redo Log (2025)",
    refuted="pages written per transaction are the same with the larger log, and the age reaches its limit again",
    judge=judge,
    engines=("mariadb",),
)
