"""A captured run as the workload of a plan: its keys, and what cannot be combined with it.

Every turn of an arm replays the complete capture, with the capture's sessions and transactions. The plan's keys for
sessions and transactions are therefore rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.study.plan.key import Key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.study.plan.plan import Arm

NAME = "transaction of the capture"
"""Name of a transaction of the replay in the evidence."""
PLACEHOLDER = "select 1;"
"""Placeholder script that the load generator requires; it is never sent."""
FASTEST = "max"

KEYS = (
    Key(
        "replay",
        "str",
        "instead of scripts: a run that `trace proxy --binds` or `trace import --log` captured, relative to this\n"
        "plan; each turn replays all of it",
        None,
    ),
    Key("speed", "str", 'for a replay: "max" (the default) omits think times, "2" halves them', None),
    Key(
        "order",
        "str",
        'for a replay: "commit" sends a statement after the commits that it followed in the capture',
        None,
        choices=("none", "commit"),
    ),
    Key(
        "template",
        "str",
        "for a replay: the database as it was when the capture began; each turn writes to a copy of it.\n"
        "Without template, setup can create the database; without either, sessions are read-only",
        None,
    ),
)
_OWN = tuple(key.name for key in KEYS if key.name != "replay")
_WORKLOAD = ("protocol", "variables", "teardown", "max_tries", "latency_limit", "expected_errors", "scale")
_SCHEDULE = ("turn", "turn_transactions", "slice", "settle", "switch")
_ARM = ("scripts", "sessions", "rate_per_s", "protocol", "client", "fetch_size", "variables", "network", "cold")


def unfit_keys(parts: Mapping[str, Mapping[str, Any]], arms: Sequence[Arm]) -> Iterator[tuple[str, str, str, int]]:
    """Yield each key that cannot be used where it is: (reason, table, key, index of the table)."""
    work = parts["workload"]
    if "replay" not in work:
        for key in _OWN:
            if key in work:
                yield f"{key} is only for a replay: name the captured run with replay", "workload", key, 0
        return
    if "template" in work and "setup" in work:
        yield "give template or setup, not both", "workload", "template", 0
    for table, keys in (("workload", _WORKLOAD), ("load", tuple(parts["load"])), ("schedule", _SCHEDULE)):
        for key in keys:
            if key in parts[table]:
                yield f"{key} cannot be given for a captured run: it has its own", table, key, 0
    for at, arm in enumerate(arms):
        for key in _ARM:
            if getattr(arm, key):
                yield f"{key} cannot be given for a captured run: arms differ by settings and SQL", "arm", key, at


def unfit_verdict(work: Mapping[str, Any], verdict: Mapping[str, Any]) -> str | None:
    """Return why the metric of the verdict does not make sense for a replay, or None if it does."""
    if is_paced(work) and verdict.get("metric") == "throughput":
        return "a replay with think times has the throughput of its capture"
    return None


def is_paced(work: Mapping[str, Any]) -> bool:
    """Return True if the replay keeps think times."""
    return "replay" in work and work.get("speed", FASTEST) != FASTEST


def core_speed(speed: str) -> float:
    """Return a replay speed in the form of the Rust core, where 0 leaves out think times."""
    return 0.0 if speed == FASTEST else float(speed)
