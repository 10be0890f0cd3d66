"""Origins of a value in a statement: the columns and the parameters from which it comes unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

NUMBERS = 1_000_000
"""Offset added to the number of a numeric literal in a shape; see `crates/dyno-proxy/src/replay/shape.rs`."""
_MARK = re.compile(r"([lp])(\d+)(?:x(\d+))?")
MENTION = re.compile(r"'p(\d+)x(\d+)'")
"""Pattern of one mention of a parameter in a shape: the parameter's number, and that of the mention."""


class Slot(NamedTuple):
    """A literal, or a mention of a parameter, in the shape of a statement."""

    is_parameter: bool
    number: int
    mention: int = 0
    is_array: bool = False


@dataclass(frozen=True)
class Origin:
    """Where a value comes from.

    `spaces` are the key spaces of its columns, with None for a column that is not a key; `keys` are the spaces in which
    a column is the key itself, not a foreign key; `made` are the spaces for which an INSERT of this statement returns
    new keys; `slots` are the literals and parameters of the value.
    """

    spaces: frozenset[int | None] = frozenset()
    keys: frozenset[int] = frozenset()
    made: frozenset[int] = frozenset()
    slots: frozenset[Slot] = frozenset()

    def as_array(self) -> Origin:
        """Return the origin with its literals and parameters marked as arrays whose elements are the value."""
        return replace(self, slots=frozenset(slot._replace(is_array=True) for slot in self.slots))


NOWHERE = Origin()
"""Origin of a computed value."""


class Output(NamedTuple):
    """A column that a query returns."""

    name: str
    origin: Origin


Outputs = list[Output] | None
"""Output columns of a query or of a source in its FROM clause; None if they are unknown."""


def common_origin(origins: Sequence[Origin]) -> Origin:
    """Return the combined origin of a value that may have any of these origins."""
    if len(origins) == 1:
        return origins[0]
    return Origin(
        frozenset().union(*(one.spaces for one in origins)),
        frozenset().union(*(one.keys for one in origins)),
        frozenset().union(*(one.made for one in origins)),
        frozenset().union(*(one.slots for one in origins)),
    )


def slot_of(literal: Any) -> Slot | None:
    """Return the literal or parameter that `literal` represents in a shape, or None if `literal` is no placeholder."""
    text = str(literal.this)
    if not literal.is_string:
        return Slot(False, int(text) - NUMBERS) if text.isdigit() and int(text) >= NUMBERS else None
    if (found := _MARK.fullmatch(text)) is None:
        return None
    return Slot(found[1] == "p", int(found[2]), int(found[3] or 0))


def name_of(identifier: Any) -> str:
    """Return the name of an identifier as the server stores it: in lower case unless it is quoted."""
    text = str(identifier.name)
    return text if identifier.args.get("quoted") else text.lower()


def joined_outputs(outputs: Iterable[Outputs]) -> Outputs:
    """Return the columns of a union: matched by position, with the names of the first query."""
    first, *others = outputs
    for other in others:
        if first is None or other is None or len(first) != len(other):
            return None
        first = [
            Output(one.name, common_origin([one.origin, two.origin])) for one, two in zip(first, other, strict=True)
        ]
    return first
