"""A plan as a tree, its identity, and its description in words.

    >>> scan = Node("Index Scan", "orders", index="orders_cust", conditions=(("Index Cond", "(cust = ?)"),))
    >>> plan = Node("Aggregate", children=(scan,))
    >>> sketch(plan)
    'Index Scan orders_cust → Aggregate'
    >>> describe_change(plan, Node("Aggregate", children=(Node("Seq Scan", "orders"),)))
    'Index Scan using orders_cust → Seq Scan on orders'

The identity is a hash of the shape: node types, relations, indexes, order and kind of joins, conditions without
literals, and schemas other than public if the log has them (log_verbose). Costs, rows, times and workers are not part
of it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 200
LONGEST = 160
_DIFFERENT_MOST = 2


USUAL_SCHEMAS = ("public", "pg_catalog")
"""Schemas that are left out, so that a plan is the same as the one logged without log_verbose."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a plan, with the names of PostgreSQL's text format.

    Attributes:
        kind: The type, such as `Hash Left Join`.
        relation: The table or other relation, or ''.
        index: The index, or ''.
        alias: The alias if it differs from the relation's name, or ''.
        label: The sub-plan of which the node is the root, or ''.
        conditions: Names and texts of conditions, without literals.
        children: The nodes below.
        schema: The relation's schema if it is known and not in `USUAL_SCHEMAS`, or ''.
    """

    kind: str
    relation: str = ""
    index: str = ""
    alias: str = ""
    label: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    children: tuple[Node, ...] = ()
    schema: str = ""

    @property
    def title(self) -> str:
        """Return the node in words: `Index Scan using orders_cust`, `Seq Scan on orders`."""
        if self.index:
            return f"{self.kind} using {self.index}"
        return f"{self.kind} on {self.relation_name}" if self.relation else self.kind

    @property
    def relation_name(self) -> str:
        """Return the relation, with its schema if that is known and not in `USUAL_SCHEMAS`."""
        return f"{self.schema}.{self.relation}" if self.schema else self.relation


def walk(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """Yield all nodes with their depth, each node before those below it."""
    yield depth, node
    for child in node.children:
        yield from walk(child, depth + 1)


def identity(plan: Node) -> str:
    """Return the identity of a plan's shape as twelve hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=6)
    for depth, node in walk(plan):
        words = (node.kind, node.relation, node.index, node.alias, node.label.partition(" ")[0])
        named = (*words, node.schema) if node.schema else words
        digest.update(repr((depth, named, sorted(node.conditions))).encode())
    return digest.hexdigest()


def differ_only_in_verbosity(old: Node, new: Node) -> bool:
    """Return True if two plans differ only because log_verbose was turned on or off.

    log_verbose adds schemas and table names: one plan has schemas, the other has none, and both are otherwise the same.
    """
    sides = [[(depth, node) for depth, node in walk(plan)] for plan in (old, new)]
    verbose = [any(node.schema for _, node in side) for side in sides]
    shapes = [[(depth, node.kind, node.relation, node.index) for depth, node in side] for side in sides]
    return verbose[0] != verbose[1] and shapes[0] == shapes[1]


def sketch(plan: Node) -> str:
    """Return the plan on one line, from its scans to its root."""
    text = _sketched(plan)
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + " … " + text[-LONGEST // 2 :]


def _sketched(node: Node) -> str:
    own = " ".join(filter(None, (node.kind, node.index or node.relation_name)))
    below = [_sketched(child) for child in node.children if child.kind != "Hash" or not child.children]
    below += [_sketched(child.children[0]) for child in node.children if child.kind == "Hash" and child.children]
    if not below:
        return own
    return f"{below[0]} → {own}" if len(below) == 1 else f"({', '.join(below)}) → {own}"


def describe_change(old: Node, new: Node) -> str:
    """Return in words what differs between two plans: their scans, otherwise their joins, otherwise anything else."""
    for chosen in (_is_access, _is_join, lambda node: True):
        sides = [Counter(node.title for _, node in walk(plan) if chosen(node)) for plan in (old, new)]
        gone, come = (list((a - b).elements()) for a, b in (sides, sides[::-1]))
        if gone or come:
            return f"{_some(gone) or 'none'} → {_some(come) or 'none'}"
    if [node.title for _, node in walk(old)] != [node.title for _, node in walk(new)]:
        return f"another order: {sketch(old)} → {sketch(new)}"
    return f"other conditions in {sketch(new)}"


def _is_access(node: Node) -> bool:
    return "Scan" in node.kind


def _is_join(node: Node) -> bool:
    return "Join" in node.kind or node.kind.startswith("Nested Loop")


def _some(titles: list[str]) -> str:
    more = len(titles) - _DIFFERENT_MOST
    return ", ".join(titles[:_DIFFERENT_MOST]) + (f" and {more} more" if more > 0 else "")
