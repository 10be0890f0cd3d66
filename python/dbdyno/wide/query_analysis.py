"""What a SELECT needs from each table it names: the columns used, and the conditions that every answer row meets.

Each occurrence of a table is a separate scan with a unique name. If the text contains something that cannot be
analysed with certainty (ASOF, POSITIONAL, samples, PIVOT), all columns are read and no condition is pushed down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.wide.conditions import and_operands, conditions, constant_value, simple_comparisons
from dbdyno.wide.mapping import Relation, WideMap
from dbdyno.wide.pushdown import Condition, TableNeeds

DIALECT = "duckdb"
SCAN = "_scan_"
_INSTALL = "run `make setup-wide` or `pip install 'dbdyno[wide]'`"


@dataclass(frozen=True)
class ScanQuery:
    """SELECT over scans: its text with the scans' names, and for each scan its table and what the query needs from it.

    `once` is True if the text reads a single scan exactly once.
    """

    sql: str
    scans: dict[str, tuple[Relation, TableNeeds]]
    once: bool


@dataclass
class _Taken:
    """Columns and conditions found for one scan."""

    relation: Relation
    columns: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)


def parser() -> Any:
    """Import and return sqlglot.

    Raises:
        WideError: sqlglot is not installed.
    """
    try:
        import sqlglot
    except ImportError:
        raise WideError("the SQL parser is not installed", next_step=_INSTALL) from None
    return sqlglot


def parse_statement(text: str) -> Any:
    """Parse a text that must be exactly one statement.

    Raises:
        WideError: The text is not valid SQL, or is not exactly one statement.
    """
    sqlglot = parser()
    try:
        found = [one for one in sqlglot.parse(text, read=DIALECT) if one is not None]
    except sqlglot.errors.SqlglotError as error:
        first = error.errors[0] if getattr(error, "errors", None) else {}
        place = f"line {first['line']}, column {first['col']}" if first.get("line") else "the query"
        said = str(first.get("description") or error).splitlines()[0]
        raise WideError(said, where=place, next_step="correct the SQL") from None
    if len(found) != 1:
        raise WideError(f"expected one statement, found {len(found)}", next_step="give one statement at a time")
    return found[0]


def analyse_query(text: str, wide_map: WideMap) -> ScanQuery:
    """Analyse a SELECT.

    Raises:
        WideError: The SELECT names a table that the map does not have.
    """
    from sqlglot import exp

    tree = parse_statement(text)
    scans = _name_scans(tree, wide_map)
    sql = tree.sql(DIALECT)
    taken = {name: _Taken(relation) for name, relation in scans.items()}
    certain = _look(tree, taken)
    if not certain:
        for one in taken.values():
            one.columns = {column.name for column in one.relation.columns}
            one.conditions = []
    limit = _limit(tree, scans) if certain else None
    wanted = {
        name: (one.relation, TableNeeds(_columns_in_order(one), tuple(one.conditions), limit, limit is not None))
        for name, one in taken.items()
    }
    return ScanQuery(sql, wanted, len(scans) == 1 and not list(tree.find_all(exp.CTE, exp.Pivot)))


def _columns_in_order(taken: _Taken) -> tuple[str, ...]:
    return tuple(column.name for column in taken.relation.columns if column.name in taken.columns)


def _name_scans(tree: Any, wide_map: WideMap) -> dict[str, Relation]:
    """Replace each reference to a table of the map by a scan's name, and return the scans."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    places = {
        id(source): source
        for scope in traverse_scope(tree)
        for _, source in scope.references
        if isinstance(source, exp.Table) and not isinstance(scope.sources.get(source.alias_or_name), type(scope))
    }
    scans: dict[str, Relation] = {}
    for table in places.values():
        if not isinstance(table.this, exp.Identifier):
            continue
        relation = wide_map.relation(table.name)
        if relation is None or table.args.get("db"):
            names = ", ".join(one.name for one in wide_map.relations)
            raise WideError(
                f"there is no table {table.sql(DIALECT)}", next_step=f"name one of the tables of the map: {names}"
            )
        name = f"{SCAN}{len(scans)}"
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(name))
        scans[name] = relation
    return scans


def _look(tree: Any, taken: Mapping[str, _Taken]) -> bool:
    """Collect columns and conditions; return False if the text cannot be analysed with certainty."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import traverse_scope

    if not isinstance(tree, exp.Query) or any(tree.find_all(exp.TableSample, exp.Pivot)):
        return False
    if any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return False
    schema: dict[str, object] = {name: {c.name: c.sql for c in one.relation.columns} for name, one in taken.items()}
    try:
        whole = qualify(
            tree.copy(),
            schema=schema,
            dialect=DIALECT,
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
        )
        scopes = list(traverse_scope(whole))
    except SqlglotError:
        return False
    stars = any(not isinstance(one.parent, exp.Count) for one in whole.find_all(exp.Star))
    if stars or any(whole.find_all(exp.TableColumn)):  # a whole row used as a value
        return False
    aliases: dict[str, list[_Taken]] = {}
    for scope in scopes:
        here = _scans_of(scope, taken)
        for alias, one in here.items():
            aliases.setdefault(alias, []).append(one)
        for alias, name, condition in conditions(scope.expression):
            _meet(here, alias, name, condition)
    return _columns(whole, aliases)


def _columns(whole: Any, aliases: Mapping[str, list[_Taken]]) -> bool:
    """Record the columns used; return False if a name may refer to a whole row."""
    from sqlglot import exp

    for column in whole.find_all(exp.Column):
        if not column.table and column.name.lower() in {alias.lower() for alias in aliases}:
            return False
        for alias, users in aliases.items():
            for one in users if column.table in ("", alias) else ():
                _use(one, column.name)
    return True


def _meet(here: Mapping[str, _Taken], alias: str, name: str, condition: Condition) -> None:
    one = here.get(alias)
    column = next((c for c in one.relation.columns if c.name.lower() == name.lower()), None) if one else None
    if one is not None and column is not None:
        made = Condition(column.name, condition.op, condition.values)
        if made not in one.conditions:
            one.conditions.append(made)


def _scans_of(scope: Any, taken: Mapping[str, _Taken]) -> dict[str, _Taken]:
    from sqlglot import exp

    return {
        alias: taken[source.name]
        for alias, (_, source) in scope.selected_sources.items()
        if isinstance(source, exp.Table) and source.name in taken
    }


def _use(taken: _Taken, name: str) -> None:
    column = next((column for column in taken.relation.columns if column.name.lower() == name.lower()), None)
    if column is not None:
        taken.columns.add(column.name)


def _limit(tree: Any, scans: Mapping[str, Relation]) -> int | None:
    """Return the number of rows to read (LIMIT plus OFFSET) for a query that only filters one table; else None."""
    from sqlglot import exp

    plain = isinstance(tree, exp.Select) and len(scans) == 1 and isinstance(tree.args.get("limit"), exp.Limit)
    odd = ("joins", "group", "having", "distinct", "order", "windows", "qualify", "with_", "with", "laterals")
    if not plain or any(tree.args.get(name) for name in odd):
        return None
    if any(tree.find_all(exp.AggFunc, exp.Window, exp.Subquery, exp.Unnest, exp.Explode)):
        return None
    place = tree.args.get("from_") or tree.args.get("from")
    if place is None or not isinstance(place.this, exp.Table):
        return None
    where = tree.args.get("where")
    if where is not None and any(not list(simple_comparisons(part)) for part in and_operands(where.this)):
        return None
    numbers = [tree.args["limit"].expression, tree.args["offset"].expression if tree.args.get("offset") else None]
    found = [constant_value(one) if one is not None else 0 for one in numbers]
    return sum(found) if all(isinstance(one, int) and not isinstance(one, bool) for one in found) else None
