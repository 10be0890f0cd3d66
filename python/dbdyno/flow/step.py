"""A query plan as a tree of steps, from the result down to the scans, in one form for all engines.

    >>> left, right = Step("scan", "customers"), Step("scan", "orders")
    >>> joined = Step("join", "id = customer", inputs=(left, right))
    >>> [one.text for one in joined.walk()]
    ['id = customer', 'customers', 'orders']

`atoms` are the conditions that a step applies, each in the common form of `conditions.py`, so that a condition can be
recognised in another step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


class Kind:
    """Kinds of steps."""

    SCAN, FILTER, JOIN, GROUP, SORT, LIMIT = "scan", "filter", "join", "group", "sort", "limit"
    PROJECT, TOP, DISTINCT, UNION, WINDOW, OTHER = "project", "top", "distinct", "union", "window", "other"


@dataclass(frozen=True)
class Step:
    """Step of a plan, with its output `rows` and its `elapsed_ns`; None if the engine does not report them."""

    kind: str
    text: str
    atoms: tuple[str, ...] = ()
    inputs: tuple[Step, ...] = ()
    rows: int | None = None
    elapsed_ns: int | None = None

    def walk(self) -> Iterator[Step]:
        """Yield this step and all steps below it, from the result down."""
        yield self
        for one in self.inputs:
            yield from one.walk()


@dataclass(frozen=True)
class Flow:
    """Plans of one flow on one engine, with its optimizer off (`written`) and on (`executed`)."""

    engine: str
    written: Step
    executed: Step
    off: str
    """Setting that switched the optimizer off."""


def without_projections(step: Step) -> Step:
    """Return the plan without steps that only choose columns, because their order changes no row."""
    inputs = tuple(without_projections(one) for one in step.inputs)
    if step.kind == Kind.PROJECT and len(inputs) == 1:
        return inputs[0]
    return replace(step, inputs=inputs)
