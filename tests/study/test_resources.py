"""What a transaction used, in words: against the base, the ends of many arms, cold and hot, more work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbdyno.study.analysis.resources import sentences


def row(arm: int, user_us: float, *, system_us: float = 0.0, read: float | None = 0.0, blocks: float | None = None):
    return {
        "arm": arm,
        "user_ns": user_us * 1e3,
        "system_ns": system_us * 1e3,
        "read_bytes": read,
        "blocks": blocks,
    }


def told(*rows: dict[str, Any], bases: list[int] | None = None) -> list[str]:
    model = {"resources": list(rows), "arms": [{"name": f"arm {at}"} for at in range(len(rows))]}
    given = bases or [0] * len(rows)
    arms = [SimpleNamespace(base=base) for base in given]
    measures = SimpleNamespace(arms=arms, compared=lambda: [(at, arm) for at, arm in enumerate(arms) if arm.base != at])
    return sentences(model, measures)  # type: ignore[arg-type]


def test_an_arm_is_told_against_its_base_with_the_systems_share():
    first = told(row(0, 100), row(1, 90, system_us=18))[0]
    assert first == "CPU of a transaction with arm 1: 108 us (17 % of it in the system), +8.0 % against 100 us."


def test_of_many_arms_the_ends_are_told():
    lines = told(*(row(at, 100 + at) for at in range(6)))
    assert lines[0].startswith("CPU of a transaction: from 100 us") and lines[0].endswith("with arm 5.")
    assert len(lines) == 2


def test_arms_that_read_from_the_storage_are_told_from_those_that_did_not():
    assert told(row(0, 1), row(1, 1, read=200))[-1].startswith("All arms were hot")
    assert told(row(0, 1), row(1, 1, read=20_480))[-1] == (
        "Sessions read from the storage with arm 1 (20.0 KiB a transaction); the others were hot."
    )
    assert len(told(row(0, 1, read=None), row(1, 1, read=None))) == 1, "what is not known is not told"


def test_a_transaction_that_does_more_work_than_its_base_is_named():
    lines = told(row(0, 1, blocks=4), row(1, 1, blocks=4), row(2, 1, blocks=50), row(3, 1, blocks=400))
    assert any(line.endswith("arm 3 touches 400 blocks, 100 times as many.") for line in lines)
    assert not any("more work" in line for line in told(row(0, 1, blocks=4), row(1, 1, blocks=5)))


def test_one_arm_or_one_without_cpu_tells_nothing():
    assert told(row(0, 1)) == []
    assert told(row(0, 0), row(1, 1)) == []
