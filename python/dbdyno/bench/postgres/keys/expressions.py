"""Values and comparisons in a parsed statement: which literals and parameters are keys.

A literal or parameter is a key where it is compared with a column that has keys (`=`, `<>`, `<`, `in`, `any`,
`between`, `is distinct from`; rows column by column), or written into one. Casts, `coalesce`, `case`, `unnest`, derived
tables, `with` and views pass a value on unchanged. In any other use the value is not a key, except for `is null`, whose
result is the same for every key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from dbdyno.bench.postgres.keys.origins import NOWHERE, Origin, Outputs, Slot, common_origin, name_of, slot_of

if TYPE_CHECKING:
    from dbdyno.bench.postgres.keys.scopes import Scope

Use = tuple[int, bool] | None
"""Use of a value: its key space and whether it is an array of keys, or None if it is not a key."""
_COMPARISONS = ("EQ", "NEQ", "NullSafeEQ", "NullSafeNEQ", "GT", "GTE", "LT", "LTE")
_SAME_VALUE = ("Paren", "Alias", "Cast", "TryCast", "Collate", "Max", "Min", "AnyValue")
_CONSTANTS = ("Null", "Boolean", "Var", "Default", "Star")
_ARRAYS = ("Any", "All", "Explode", "Unnest")
QUERIES = ("Select", "Union", "Intersect", "Except", "Subquery", "Values", "Insert", "Update", "Delete", "Merge")


_READERS = {
    **dict.fromkeys(_SAME_VALUE, "_inner"),
    **dict.fromkeys(_CONSTANTS, "_constant"),
    **dict.fromkeys(_ARRAYS, "_any_of"),
    **dict.fromkeys(QUERIES, "_scalar"),
    "Literal": "_literal",
    "Column": "_column",
    "Array": "_any_item",
    "Coalesce": "_any_item",
    "Case": "_case",
}
"""Methods that find the origin of a value, by the kind of its expression."""


class ExpressionReader(ABC):
    """Reader of expressions; `uses` holds the uses of each literal and parameter (`is null` adds none)."""

    def __init__(self) -> None:
        self.uses: dict[Slot, set[Use]] = defaultdict(set)

    @abstractmethod
    def query(self, node: Any, outer: Scope | None) -> Outputs:
        """Read a query, and return its output columns."""

    def record_use(self, slots: frozenset[Slot], *spaces: int | None) -> None:
        """Record that these values are keys of one space, or no keys if the space is None or ambiguous."""
        for slot in slots:
            space = spaces[0] if len(spaces) == 1 else None
            self.uses[slot._replace(is_array=False)].add(None if space is None else (space, slot.is_array))

    def relate(self, first: Origin, second: Origin) -> None:
        """Record that two values are compared, or that a value is written to a column."""
        self.record_use(first.slots, *second.spaces)
        self.record_use(second.slots, *first.spaces)

    def visit(self, node: Any, scope: Scope) -> None:
        """Record the uses of the values in an expression, whose own value is not a key."""
        kind = type(node).__name__
        if kind in _COMPARISONS:
            self.compare(node.this, node.expression, scope)
        elif kind == "In":
            self._read_expressions(node, scope)
        elif kind == "Between":
            self.compare(node.this, node.args["low"], scope)
            self.compare(node.this, node.args["high"], scope)
        elif kind == "Is" and type(node.expression).__name__ == "Null":
            for slot in self.origin(node.this, scope).slots:
                self.uses[slot._replace(is_array=False)] |= set()
        elif kind in QUERIES:
            self.query(node, scope)
        elif kind in ("Column", "Literal"):
            self.record_use(self.origin(node, scope).slots, None)
        else:
            for child in node.iter_expressions():
                self.visit(child, scope)

    def compare(self, left: Any, right: Any, scope: Scope) -> None:
        """Read a comparison or an assignment; rows are compared column by column."""
        lefts, rights = self._row(left, scope), self._row(right, scope)
        if len(lefts) == len(rights):
            for one, other in zip(lefts, rights, strict=True):
                self.relate(one, other)
            return
        for origin in (*lefts, *rights):
            self.record_use(origin.slots, None)

    def _row(self, node: Any, scope: Scope) -> list[Origin]:
        """Return the origins of a row's values; a single value counts as a row with one value."""
        node = _bare(node)
        kind = type(node).__name__
        if kind in ("Tuple", "Row"):
            return [self.origin(item, scope) for item in node.expressions]
        if kind in QUERIES:
            return [output.origin for output in self.query(node, scope) or ()]
        return [self.origin(node, scope)]

    def _read_expressions(self, node: Any, scope: Scope) -> None:
        for item in node.expressions:
            self.compare(node.this, item, scope)
        for name in ("query", "field"):
            if (other := node.args.get(name)) is not None:
                self.compare(node.this, other, scope)
        if (array := node.args.get("unnest")) is not None:
            self.relate(self.origin(node.this, scope), self.origin(array, scope))

    def origin(self, node: Any, scope: Scope) -> Origin:
        """Return the column or parameter that a value comes from, or `NOWHERE` if it is computed."""
        if (reader := _READERS.get(type(node).__name__)) is not None:
            found: Origin = getattr(self, reader)(node, scope)
            return found
        self.visit(node, scope)
        return NOWHERE

    def _inner(self, node: Any, scope: Scope) -> Origin:
        return self.origin(node.this, scope)

    def _literal(self, node: Any, scope: Scope) -> Origin:
        slot = slot_of(node)
        return NOWHERE if slot is None else Origin(slots=frozenset({slot}))

    def _constant(self, node: Any, scope: Scope) -> Origin:
        return NOWHERE

    def _any_of(self, node: Any, scope: Scope) -> Origin:
        """Return the origin of an element that `any`, `all` or `unnest` takes from an array."""
        return self._element(node.this if node.this is not None else node.expressions[0], scope)

    def _any_item(self, node: Any, scope: Scope) -> Origin:
        """Return the common origin of all items of `array` or `coalesce`."""
        items = [*([] if node.this is None else [node.this]), *node.expressions]
        return common_origin([self.origin(item, scope) for item in items])

    def _scalar(self, node: Any, scope: Scope) -> Origin:
        outputs = self.query(node, scope)
        return outputs[0].origin if outputs else NOWHERE

    def _element(self, array: Any, scope: Scope) -> Origin:
        """Return the origin of an array's elements."""
        array = _bare(array)
        while type(array).__name__ in ("Cast", "TryCast", "Paren"):
            array = array.this
        origin = self.origin(array, scope)
        return origin if type(array).__name__ == "Array" or type(array).__name__ in QUERIES else origin.as_array()

    def _case(self, node: Any, scope: Scope) -> Origin:
        found = [] if (default := node.args.get("default")) is None else [self.origin(default, scope)]
        for one in node.args["ifs"]:
            if node.this is None:
                self.visit(one.this, scope)
            else:
                self.compare(node.this, one.this, scope)
            found.append(self.origin(one.args["true"], scope))
        return common_origin(found)

    def _column(self, node: Any, scope: Scope) -> Origin:
        if type(node.this).__name__ != "Identifier":
            return NOWHERE
        source = node.args.get("table")
        return scope.column(name_of(source) if source is not None else None, name_of(node.this)) or NOWHERE


def _bare(node: Any) -> Any:
    while type(node).__name__ == "Paren":
        node = node.this
    return node
