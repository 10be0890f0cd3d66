"""A plan as a tree, what identifies it, and how it is said in words.

    >>> scan = Node("Index Scan", "orders", index="orders_cust", conditions=(("Index Cond", "(cust = ?)"),))
    >>> plan = Node("Aggregate", children=(scan,))
    >>> sketch(plan)
    'Index Scan orders_cust → Aggregate'
    >>> changed(plan, Node("Aggregate", children=(Node("Seq Scan", "orders"),)))
    'Index Scan using orders_cust → Seq Scan on orders'

The identity is a hash over the shape: node types, relations, indexes, order and kind of joins, conditions without
literals, and schemas but public, where the log has them (log_verbose). Costs, rows, times and workers are not in it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 200
LONGEST = 160
_DIFFERENT_MOST = 2


USUAL = ("public", "pg_catalog")
"""Schemas that are left out: a plan with them is the one that the log has without log_verbose."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node as PostgreSQL's text format names it (`Hash Left Join`). `alias` only where it is not the relation's
    name; `label`: of which sub-plan it is the root; `schema`: the relation's, where it is known and none of `USUAL`."""

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
        """How it is said: `Index Scan using orders_cust`, `Seq Scan on orders`."""
        if self.index:
            return f"{self.kind} using {self.index}"
        return f"{self.kind} on {self.named}" if self.relation else self.kind

    @property
    def named(self) -> str:
        """The relation, with its schema where that is known and not the usual one."""
        return f"{self.schema}.{self.relation}" if self.schema else self.relation


def walk(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """All nodes with their depth, each before what is below it."""
    yield depth, node
    for child in node.children:
        yield from walk(child, depth + 1)


def identity(plan: Node) -> str:
    """Twelve hexadecimal digits, the same for the same shape."""
    digest = hashlib.blake2b(digest_size=6)
    for depth, node in walk(plan):
        words = (node.kind, node.relation, node.index, node.alias, node.label.partition(" ")[0])
        named = (*words, node.schema) if node.schema else words
        digest.update(repr((depth, named, sorted(node.conditions))).encode())
    return digest.hexdigest()


def differ_in_words_alone(old: Node, new: Node) -> bool:
    """Whether the one plan has schemas and the other none, and they are alike otherwise: log_verbose was turned on or
    off, which puts schemas and table names into what was one plan."""
    sides = [[(depth, node) for depth, node in walk(plan)] for plan in (old, new)]
    verbose = [any(node.schema for _, node in side) for side in sides]
    shapes = [[(depth, node.kind, node.relation, node.index) for depth, node in side] for side in sides]
    return verbose[0] != verbose[1] and shapes[0] == shapes[1]


def sketch(plan: Node) -> str:
    """The plan on one line, from its scans to its root."""
    text = _sketched(plan)
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + " … " + text[-LONGEST // 2 :]


def _sketched(node: Node) -> str:
    own = " ".join(filter(None, (node.kind, node.index or node.named)))
    below = [_sketched(child) for child in node.children if child.kind != "Hash" or not child.children]
    below += [_sketched(child.children[0]) for child in node.children if child.kind == "Hash" and child.children]
    if not below:
        return own
    return f"{below[0]} → {own}" if len(below) == 1 else f"({', '.join(below)}) → {own}"


def changed(old: Node, new: Node) -> str:
    """What of a plan is not as before: first how rows are found, then how they are joined, then all else."""
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
