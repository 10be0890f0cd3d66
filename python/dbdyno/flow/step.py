"""A plan as steps, whatever engine it is of: a tree from the result down to what is read.

    >>> left, right = Step("scan", "customers"), Step("scan", "orders")
    >>> joined = Step("join", "id = customer", inputs=(left, right))
    >>> [one.text for one in joined.walk()]
    ['id = customer', 'customers', 'orders']

`atoms` are the conditions that a step applies, each brought into one form (`conditions.py`), so that a condition is
known again at another place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

SCAN, FILTER, JOIN, GROUP, SORT, LIMIT = "scan", "filter", "join", "group", "sort", "limit"
PROJECT, TOP, DISTINCT, UNION, WINDOW, OTHER = "project", "top", "distinct", "union", "window", "other"


@dataclass(frozen=True)
class Step:
    """One step. `rows` came out of it, `elapsed_ns` it took; None where the engine does not tell."""

    kind: str
    text: str
    atoms: tuple[str, ...] = ()
    inputs: tuple[Step, ...] = ()
    rows: int | None = None
    elapsed_ns: int | None = None

    def walk(self) -> Iterator[Step]:
        """This step and all below it, from the result down."""
        yield self
        for one in self.inputs:
            yield from one.walk()


@dataclass(frozen=True)
class Flow:
    """What one engine said of a flow, with its optimizer off and on."""

    engine: str
    written: Step
    executed: Step
    off: str
    """What switched the optimizer off."""


def shortened(step: Step) -> Step:
    """Without steps that only choose columns: who orders them changes no row."""
    inputs = tuple(shortened(one) for one in step.inputs)
    if step.kind == PROJECT and len(inputs) == 1:
        return inputs[0]
    return replace(step, inputs=inputs)
