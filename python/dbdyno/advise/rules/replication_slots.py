"""Rule: replication slots that hold back WAL."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import literal, size
from dbdyno.advise.kinds import Setting, Slot
from dbdyno.advise.rule import Advice, Evidence, Rule

_LOST = ("lost", "unreserved")


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield slots without a consumer that hold more WAL than max_wal_size, and slots that lost their WAL."""
    limit, keep = facts.setting("max_wal_size"), facts.setting("max_slot_wal_keep_size")
    least = limit.bytes if limit is not None else 1024**3
    unbounded = keep is None or keep.bytes < 0
    for one in facts.rows_of(Slot):
        held = one.held_bytes or 0
        if one.status not in _LOST and (one.is_active or held < least):
            continue
        lost = one.status in _LOST
        yield Advice(
            f"slot {one.name} lost the WAL that its consumer needs, so no consumer can use it any more"
            if lost
            else f"slot {one.name} has no consumer and holds {size(held)} of WAL"
            + ("; only the size of the disk limits that" if unbounded else ""),
            (
                Evidence("WAL held", one.held_bytes, "bytes", f"pg_replication_slots, {one.name}, restart_lsn"),
                Evidence("active", "yes" if one.is_active else "no", "text", f"pg_replication_slots, {one.name}"),
                Evidence("wal_status", one.status or None, "text", f"pg_replication_slots, {one.name}"),
                Evidence("max_slot_wal_keep_size", keep.value if keep else None, "text", "pg_settings"),
            ),
            "no time: a full WAL disk stops the server; a held xmin horizon makes vacuum useless",
            (
                f"-- start its consumer, or: select pg_drop_replication_slot({literal(one.name)})",
                "-- and a limit: alter system set max_slot_wal_keep_size = '...'",
            ),
            level="critical" if unbounded and not lost else "warning",
            subject=one.name,
        )


RULE = Rule(
    name="replication_slots",
    family="replication",
    title="Replication slots that hold the WAL",
    reads=(Setting, Slot),
    condition="a slot is inactive and holds more than max_wal_size, or its WAL status is unreserved or lost",
    expects="availability",
    risk="a consumer whose slot is dropped must be created again",
    source="PostgreSQL documentation, Replication Slots and pg_replication_slots (2025)",
    refuted="the consumer is down only for minutes, and the disk has space for the whole outage",
    judge=judge,
)
