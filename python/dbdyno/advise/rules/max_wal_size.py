"""Rule: checkpoints requested by WAL volume, and the full-page images they cause."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import block_bytes, count, duration, setting_number, setting_size, share, size
from dbdyno.advise.kinds import Checkpoints, Setting, Wal
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LEAST_REQUESTED = 3
LEAST_IMAGES = 0.2
"""Minimum share of full-page images in the WAL."""
LEAST_DISTANCE = 0.4
"""Minimum WAL between checkpoints, as a share of the amount at which max_wal_size triggers one; below it, backups or
commands requested the checkpoints.
"""


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if max_wal_size triggers most checkpoints, and much of the WAL is full-page images."""
    points, wal = facts.row_of(Checkpoints), facts.row_of(Wal)
    limit = facts.setting("max_wal_size")
    if limit is None or points.requested < LEAST_REQUESTED or points.requested <= points.timed:
        return
    if not wal.span_s or not points.span_s or abs(wal.span_s - points.span_s) > 0.1 * wal.span_s:
        yield InsufficientEvidence(
            "the counters of WAL and checkpoints start at different times", "take two snapshots and advise on those"
        )
        return
    target = setting_number(facts, "checkpoint_completion_target", 0.9)
    trigger = limit.bytes / (1 + target)
    distance = wal.bytes / (points.requested + points.timed)
    images = min(wal.full_pages * block_bytes(facts) / wal.bytes, 1.0) if wal.bytes else 0.0
    if distance < LEAST_DISTANCE * trigger or images < LEAST_IMAGES:
        return
    timeout = facts.setting("checkpoint_timeout")
    timeout_s = timeout.ms / 1000 if timeout is not None else 300.0
    wanted = wal.bytes / wal.span_s * timeout_s * (1 + target)
    yield _advice(points, wal, limit, trigger, images, wanted, timeout_s)


def _advice(
    points: Checkpoints, wal: Wal, limit: Setting, trigger: float, images: float, wanted: float, timeout_s: float
) -> Advice:
    span_s = wal.span_s or 1.0
    fewer = max(span_s / (points.requested + points.timed), 0.001)
    return Advice(
        f"{points.requested} of {points.requested + points.timed} checkpoints were triggered by the amount of WAL, one "
        f"every {duration(fewer)}; {share(images)} of the WAL is full-page images",
        (
            Evidence("checkpoints requested", points.requested, "count", "checkpoint counters"),
            Evidence("checkpoints by time", points.timed, "count", "checkpoint counters"),
            Evidence("WAL", wal.bytes, "bytes", "pg_stat_wal.wal_bytes"),
            Evidence("full-page images", wal.full_pages, "count", "pg_stat_wal.wal_fpi"),
            Evidence("max_wal_size", limit.bytes, "bytes", "pg_settings"),
            Evidence("WAL that triggers a checkpoint", trigger, "bytes", "max_wal_size / (1 + completion target)"),
        ),
        f"each page is logged in full once per checkpoint: one checkpoint every {duration(timeout_s)} writes up to "
        f"{count(max(timeout_s / fewer, 1.0))} times fewer images, and saves at most "
        f"{size(images * wal.bytes / span_s)} of WAL a second; less if updates rarely hit the same page",
        (f"alter system set max_wal_size = '{setting_size(wanted)}'", "select pg_reload_conf()"),
        subject="max_wal_size",
        proposed=setting_size(wanted),
    )


RULE = Rule(
    name="max_wal_size",
    family="wal",
    title="Checkpoints requested by the amount of WAL",
    reads=(Setting, Checkpoints, Wal),
    condition="the amount of WAL triggered three or more checkpoints, and more than time did; full-page images are 20 "
    "% of the WAL or more",
    expects="fewer full-page images, so less WAL to write, ship and replay",
    risk="recovery after a crash may replay more WAL, and the WAL's disk needs the space",
    source="PostgreSQL source, xlog.c (CheckPointSegments); documentation, WAL Configuration (2025)",
    refuted="WAL per transaction is the same over at least three checkpoints with either value",
    judge=judge,
    setting="max_wal_size",
)
