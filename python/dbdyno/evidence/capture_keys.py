"""Positions of keys in the statements of a capture, as passed to the core, and the core's report on these keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dbdyno.base.json_types import JsonObject

_PARAMETER = re.compile(r"'p(\d+)x\d+'")
_LITERAL = re.compile(r"'l\d+'|\b1\d{6}\b")
_SHOWN = 3
_LONGEST = 100


class KeyPosition(NamedTuple):
    """A parameter or literal that is a key of key space `space`; `number` counts parameters from 1, literals from 0."""

    number: int
    space: int
    is_array: bool


@dataclass
class KeyPositions:
    """Positions of keys in the text of one or more statements.

    `returns` has a list for each statement: the key space of each returned column, or None if that column holds no new
    keys. `writes` is True if the text changes data or may do so, even if its command tag is SELECT.
    """

    shape: str
    parameters: list[KeyPosition] = field(default_factory=list)
    literals: list[KeyPosition] = field(default_factory=list)
    returns: list[list[int | None]] = field(default_factory=list)
    writes: bool = False

    def is_needed(self) -> bool:
        """Return True if the replay must know about the text, because it contains or returns a key, or changes data."""
        returned = any(space is not None for columns in self.returns for space in columns)
        return bool(self.parameters or self.literals or returned or self.writes)


@dataclass
class KeyPlan:
    """Key spaces by name and kind, and the positions of keys in each statement of a capture.

    `unread` are statements that could not be parsed; `mixed` are those in which a parameter is a key in one place and
    something else in another. Both have the number of times that each statement was sent. No key is mapped in these
    statements.
    """

    names: Sequence[str] = ()
    kinds: Sequence[str] = ()
    statements: list[KeyPositions] = field(default_factory=list)
    unread: list[tuple[str, int]] = field(default_factory=list)
    mixed: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0

    def request(self) -> JsonObject:
        """Return the plan in the form that the core reads."""
        return {"spaces": list(self.kinds), "statements": [vars(places) for places in self.statements]}

    def result(self, report: Mapping[str, Any]) -> JsonObject:
        """Return the core's report with names of key spaces, and the statements in which no key was mapped."""
        counted = [
            {"space": name, "keys": keys, "mapped": mapped}
            for name, (keys, mapped) in zip(self.names, report["keys"], strict=True)
            if keys or mapped
        ]
        left = {
            name: [{"statement": shape, "times": times} for shape, times in statements]
            for name, statements in (("unread", self.unread), ("mixed", self.mixed))
        }
        return {**report, "keys": counted, **left, "unmapped": list(unmapped_keys(self))}


def sentences(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about the keys that a replay mapped or did not map."""
    if report["ids"]:
        by = ", ".join(f"{one['space']}: {one['keys']:,}" for one in report["keys"] if one["keys"])
        yield (
            f"{report['ids']:,} generated keys differ now ({by}); {report['mapped']:,} values that matched "
            f"such keys were replaced by the new keys, all others were sent as captured."
        )
    if report["late_keys"]:
        yield (
            f"{report['late_keys']:,} keys were sent as captured, because the session that generates them had not done "
            f"so within 5 s: use --order commit to keep the order of sessions that block each other."
        )
    yield from report["unmapped"]


def unmapped_keys(plan: KeyPlan) -> Iterator[str]:
    """Yield sentences about statements that may contain a key, but in which no key was mapped."""
    reasons = (
        (plan.unread, "could not be parsed, so no key is mapped in them"),
        (plan.mixed, "use one parameter both as a key and as another value, so it is sent as captured"),
    )
    for statements, why in reasons:
        if statements:
            times = sum(times for _, times in statements)
            shown = "; ".join(_short(shape) for shape, _ in statements[:_SHOWN])
            more = f"; and {len(statements) - _SHOWN:,} more" if len(statements) > _SHOWN else ""
            yield f"{len(statements):,} of {plan.count:,} statements, sent {times:,} times, {why}: {shown}{more}."


def _short(shape: str) -> str:
    """Return the beginning of a statement, with parameters and literals as they are usually written."""
    text = _PARAMETER.sub(r"$\1", _LITERAL.sub("?", " ".join(shape.split())))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
