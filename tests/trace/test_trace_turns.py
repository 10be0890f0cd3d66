"""Owners of the waits between calls, compared with their definition for every single wait."""

from __future__ import annotations

import random

import numpy as np

from dbdyno.study.analysis.traces.turns import owners_of

CALL, HARD, COMMIT = 0, 1, 2
Event = tuple[int, int, str, int, int]
"""Session, line, `owner` or `wait`, its owner or whether it ends the turn, its rank."""


def owner_by_definition(events: list[Event], wait: Event) -> int:
    """Return the first owner with the lowest rank in the wait's turn; otherwise the owner of the turn before."""
    turns: list[list[Event]] = [[]]
    mine = 0
    for one in sorted(one for one in events if one[0] == wait[0]):
        turns[-1].append(one)
        if one == wait:
            mine = len(turns) - 1
        if one[2] == "wait" and one[3]:
            turns.append([])
    for turn in reversed(turns[: mine + 1]):
        for rank in (CALL, HARD, COMMIT):
            for one in turn:
                if one[2] == "owner" and one[4] == rank:
                    return one[3]
    return -1


def test_every_wait_has_the_owner_that_the_definition_gives() -> None:
    seed = random.randrange(1 << 20)
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(200):
        events: list[Event] = []
        lines = iter(dice.sample(range(1000), 60))
        for session in dice.sample(range(5), dice.randint(1, 3)):
            for _ in range(dice.randint(0, 20)):
                kind = dice.choice(("owner", "wait"))
                value = dice.randrange(6) if kind == "owner" else int(dice.random() < 0.4)
                events.append((session, next(lines), kind, value, dice.choice((CALL, HARD, COMMIT))))
        owners, waits = ([one for one in events if one[2] == kind] for kind in ("owner", "wait"))
        found = owners_of(
            {name: np.array([one[at] for one in owners], dtype=np.int64) for name, at in OWNER_COLUMNS.items()},
            {
                "session": np.array([one[0] for one in waits], dtype=np.int64),
                "line": np.array([one[1] for one in waits], dtype=np.int64),
                "ends": np.array([one[3] for one in waits], dtype=bool),
            },
        )
        assert found.tolist() == [owner_by_definition(events, wait) for wait in waits]


OWNER_COLUMNS = {"session": 0, "line": 1, "owner": 3, "rank": 4}
