"""Reader of a parsed query, INSERT, UPDATE, DELETE or MERGE, which finds the origins of the columns it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dbdyno.bench.postgres.keys.catalog import Catalog, Relation
from dbdyno.bench.postgres.keys.expressions import ExpressionReader
from dbdyno.bench.postgres.keys.origins import NOWHERE, Output, Outputs, common_origin, joined_outputs, name_of
from dbdyno.bench.postgres.keys.parsing import parse_statement
from dbdyno.bench.postgres.keys.scopes import Scope

_CLAUSES = (
    "where",
    "having",
    "group",
    "order",
    "limit",
    "offset",
    "distinct",
    "windows",
    "qualify",
    "locks",
    "laterals",
)
_FOLDED = ("old", "new")


class StatementReader(ExpressionReader):
    """Reader that walks over a statement's syntax tree and finds which values are compared with which columns."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self.catalog = catalog

    def query(self, node: Any, outer: Scope | None) -> Outputs:
        """Read a query or a statement, and return its columns."""
        scope = Scope(outer)
        self._read_with(node, scope)
        kind = type(node).__name__.lower()
        if kind in ("union", "intersect", "except"):
            return joined_outputs([self.query(node.this, scope), self.query(node.expression, scope)])
        reader = getattr(self, f"_{kind}", None)
        if reader is None:
            self.visit_all(node.iter_expressions(), scope)
            return None
        outputs: Outputs = reader(node, scope)
        return outputs

    def visit_all(self, nodes: Iterable[Any], scope: Scope) -> None:
        """Read expressions whose values are not keys."""
        for node in nodes:
            self.visit(node, scope)

    def _read_with(self, node: Any, scope: Scope) -> None:
        if (clause := node.args.get("with_")) is None:
            return
        for cte in clause.expressions:
            name = name_of(cte.args["alias"].this)
            query = cte.this
            if clause.args.get("recursive") and type(query).__name__ == "Union":
                scope.queries[name] = self._rename(self.query(query.this, scope), cte)
            scope.queries[name] = self._rename(self.query(query, scope), cte)

    def _rename(self, outputs: Outputs, node: Any) -> Outputs:
        """Return the columns, renamed if an alias names columns."""
        alias = node.args.get("alias")
        names = [name_of(column) for column in alias.args.get("columns") or ()] if alias is not None else []
        if outputs is None or not names:
            return outputs
        renamed = [Output(name, output.origin) for name, output in zip(names, outputs, strict=False)]
        return renamed + outputs[len(renamed) :]

    def _subquery(self, node: Any, scope: Scope) -> Outputs:
        return self.query(node.this, scope)

    def _select(self, node: Any, scope: Scope) -> Outputs:
        self._read_from(node.args.get("from_"), node.args.get("joins"), scope)
        outputs = self._outputs(node.expressions, scope)
        for name in _CLAUSES:
            self._clause(node.args.get(name), scope)
        return outputs

    def _clause(self, clause: Any, scope: Scope) -> None:
        for one in clause if isinstance(clause, list) else [clause]:
            if one is not None and hasattr(one, "iter_expressions"):
                self.visit(one, scope)

    def _outputs(self, expressions: Sequence[Any], scope: Scope) -> Outputs:
        found: list[Output] = []
        is_known = True
        for one in expressions:
            is_column = type(one).__name__ == "Column"
            if type(one).__name__ == "Star" or (is_column and type(one.this).__name__ == "Star"):
                source = one.args.get("table")
                columns = scope.all_columns(name_of(source) if source is not None else None)
                is_known &= columns is not None
                found.extend(columns or ())
            else:
                name = one.alias_or_name
                found.append(Output(name if _is_quoted(one) else name.lower(), self.origin(one, scope)))
        return found if is_known else None

    def _values(self, node: Any, scope: Scope) -> Outputs:
        rows = [[self.origin(item, scope) for item in _items(row)] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            return None
        columns = [Output(f"column{at}", common_origin(column)) for at, column in enumerate(zip(*rows, strict=True), 1)]
        return self._rename(columns, node)

    def _read_from(self, clause: Any, joins: Any, scope: Scope) -> None:
        for node in clause if isinstance(clause, list) else [clause]:
            if hasattr(node, "args"):
                self._source(node.this if type(node).__name__ == "From" else node, scope)
        for join in joins or ():
            self._join(join, scope)

    def _join(self, join: Any, scope: Scope) -> None:
        before = Scope(None, dict(scope.sources))
        self._source(join.this, scope)
        scope.merges |= bool(join.args.get("using")) or join.args.get("method") == "NATURAL"
        for column in join.args.get("using") or ():
            name = name_of(column)
            newest = Scope(None, {key: value for key, value in scope.sources.items() if key not in before.sources})
            self.relate(before.column(None, name) or NOWHERE, newest.column(None, name) or NOWHERE)
        if (condition := join.args.get("on")) is not None:
            self.visit(condition, scope)

    def _source(self, node: Any, scope: Scope) -> None:
        """Add a table or subquery in FROM to the sources."""
        kind = type(node).__name__
        inner = node.this if kind == "Lateral" else node
        inner_kind = type(inner).__name__
        if inner_kind == "Table" and type(inner.this).__name__ == "Identifier":
            outputs = self._table(inner, scope)
        elif inner_kind in ("Subquery", "Values"):
            outputs = self.query(inner, scope)
        elif inner_kind == "Unnest":
            outputs = [Output("unnest", self._element(one, scope)) for one in inner.expressions]
        else:
            self.visit_all(inner.iter_expressions(), scope)
            outputs = None
        alias = node.alias or (
            name_of(inner.this) if inner_kind == "Table" and outputs is not None else node.alias_or_name
        )
        name = alias if _is_quoted(node) else alias.lower()
        if inner_kind == "Unnest" and outputs and len(outputs) == 1 and name:
            outputs = [Output(name, outputs[0].origin)]
        scope.sources[name or f"({len(scope.sources)})"] = self._rename(outputs, node)
        for join in node.args.get("joins") or ():
            self._join(join, scope)

    def _table(self, node: Any, scope: Scope) -> Outputs:
        schema, name = node.args.get("db"), name_of(node.this)
        if schema is None:
            is_query, outputs = scope.query(name)
            if is_query:
                return outputs
        relation = self.catalog.find(name_of(schema) if schema is not None else None, name)
        return None if relation is None else self._columns(relation)

    def _columns(self, relation: Relation) -> list[Output]:
        """Return the columns of a relation; those of a view come from its query."""
        if relation.definition is None:
            return [Output(name, self.catalog.origin(relation, name)) for name in relation.columns]
        known = self.catalog.views
        if relation.oid not in known:
            known[relation.oid] = [Output(name, NOWHERE) for name in relation.columns]
            tree = parse_statement(relation.definition)
            outputs = StatementReader(self.catalog).query(tree, None) if tree is not None else None
            if outputs is not None and len(outputs) == len(relation.columns):
                known[relation.oid] = [
                    Output(name, output.origin) for name, output in zip(relation.columns, outputs, strict=True)
                ]
        return known[relation.oid]

    def _target(self, node: Any, scope: Scope) -> list[Output]:
        """Add to the sources the table to which the statement writes, and return its columns."""
        outputs = self._table(node, Scope())
        alias = node.args.get("alias")
        scope.sources[name_of(alias.this if alias is not None else node.this)] = outputs
        return outputs or []

    def _insert(self, node: Any, scope: Scope) -> Outputs:
        has_columns = type(node.this).__name__ == "Schema"
        inside = Scope(scope)
        target = self._target(node.this.this if has_columns else node.this, inside)
        if has_columns:
            named = dict(target)
            target = [Output(name_of(column), named.get(name_of(column), NOWHERE)) for column in node.this.expressions]
        if (source := node.expression) is not None:
            self._write(target, source, scope)
        if (conflict := node.args.get("conflict")) is not None:
            inside.sources["excluded"] = target
            self._assign(conflict.expressions, target, inside)
            self._clause(conflict.args.get("where"), inside)
        return self._read_returning(node, inside, is_made=True)

    def _write(self, target: Sequence[Output], source: Any, scope: Scope) -> None:
        for at, output in enumerate(self.query(source, scope) or ()):
            self.relate(target[at].origin if at < len(target) else NOWHERE, output.origin)

    def _assign(self, assignments: Sequence[Any], target: Sequence[Output], scope: Scope) -> None:
        """Read the assignments `column = value` and `(columns) = (values)` to columns of the target table."""
        own = Scope(None, {"": list(target)})
        for one in assignments:
            if type(one).__name__ != "EQ":
                self.visit(one, scope)
                continue
            lefts, rights = self._row(one.this, own), self._row(one.expression, scope)
            for at, origin in enumerate(rights):
                self.relate(lefts[at] if at < len(lefts) else NOWHERE, origin)

    def _update(self, node: Any, scope: Scope) -> Outputs:
        target = self._target(node.this, scope)
        self._read_from(node.args.get("from_"), node.args.get("joins"), scope)
        self._assign(node.expressions, target, scope)
        self._clause(node.args.get("where"), scope)
        return self._read_returning(node, scope)

    def _delete(self, node: Any, scope: Scope) -> Outputs:
        self._target(node.this, scope)
        self._read_from(node.args.get("using"), node.args.get("joins"), scope)
        self._clause(node.args.get("where"), scope)
        return self._read_returning(node, scope)

    def _merge(self, node: Any, scope: Scope) -> Outputs:
        target = self._target(node.this, scope)
        self._source(node.args["using"], scope)
        self._clause(node.args.get("on"), scope)
        named = dict(target)
        for when in node.args["whens"].expressions:
            self._clause(when.args.get("condition"), scope)
            then = when.args.get("then")
            if type(then).__name__ == "Update":
                self._assign(then.expressions, target, scope)
            elif type(then).__name__ == "Insert":
                columns = [Output(one.name, named.get(name_of(one.this), NOWHERE)) for one in _items(then.this)]
                values = [self.origin(value, scope) for value in _items(then.expression)]
                for column, value in zip(columns or target, values, strict=False):
                    self.relate(column.origin, value)
        # Whether `*` has the columns of the source first depends on the version.
        scope.merges = True
        return self._read_returning(node, scope, is_made=True)

    def _read_returning(self, node: Any, scope: Scope, *, is_made: bool = False) -> Outputs:
        if (clause := node.args.get("returning")) is None:
            return []
        own = next(iter(scope.sources.values()), None)
        if is_made and own is not None:
            made = [Output(out.name, replace(out.origin, made=out.origin.keys)) for out in own]
            scope.sources[next(iter(scope.sources))] = made
            own = made
        scope.sources.pop("excluded", None)
        outer = Scope(scope, dict.fromkeys(_FOLDED, own))
        return self._outputs(clause.expressions, Scope(outer, scope.sources, merges=scope.merges))


def _items(node: Any) -> list[Any]:
    return list(getattr(node, "expressions", None) or ([] if node is None else [node]))


def _is_quoted(node: Any) -> bool:
    """Return True if an expression's name is quoted."""
    alias = node.args.get("alias")
    name = alias if alias is not None else node.this
    inner = getattr(name, "this", None)
    identifier = name if type(name).__name__ == "Identifier" else inner
    return bool(getattr(identifier, "args", {}).get("quoted"))
