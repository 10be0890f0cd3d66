"""Check with HypoPG and EXPLAIN whether the planner would use an index that does not exist.

The statement that is planned is a look-up by the index's column alone, with an unknown value; it is never a statement
of the user, and nothing is executed. Names come from the catalog, quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.advise.kinds import HypotheticalIndex
from dbdyno.base.json_types import JsonObject

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

LOOKUPS_MOST = 10
_QUALIFIED = re.compile(r'^("(?:[^"]|"")+"|[^".]+)\.')
_HOME = """
select /* dbdyno */ quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'hypopg'
"""


def lookup_costs(connection: Connection, wanted: Iterable[tuple[str, str]]) -> list[HypotheticalIndex]:
    """Return the costs of a look-up without and with an index, for each table (quoted as in the rules) and column.

    The list is empty without the extension; look-ups that cannot be planned (because of a lock or a missing privilege)
    are left out.
    """
    import psycopg

    found = connection.execute(_HOME).fetchone()
    rows: list[HypotheticalIndex] = []
    if found is None:
        return rows
    for table, column in list(wanted)[:LOOKUPS_MOST]:
        try:
            with connection.transaction():
                rows.append(_estimate_of(connection, str(found[0]), table, column))
        except psycopg.Error:
            if connection.broken:
                raise
    return rows


def _estimate_of(connection: Connection, home: str, table: str, column: str) -> HypotheticalIndex:
    where = table if _QUALIFIED.match(table) else f"public.{table}"
    named = '"' + column.replace('"', '""') + '"'
    connection.execute("select set_config('plan_cache_mode', 'force_generic_plan', true)")
    lookup = f"select * from {where} where {named} = $1"
    try:
        before = _generic_plan(connection, lookup)
        connection.execute(
            f"select indexname from {home}.hypopg_create_index(%s)",
            [f"create index on {where} ({named})"],
        )
        after = _generic_plan(connection, lookup)
        used = any(str(node.get("Index Name", "")).startswith("<") for node in _nodes(after))
        return HypotheticalIndex(table, column, before["Total Cost"], after["Total Cost"], used)
    finally:
        if not connection.broken and connection.info.transaction_status.name != "INERROR":
            connection.execute(f"select {home}.hypopg_reset()")


def _generic_plan(connection: Connection, lookup: str) -> JsonObject:
    """Return the plan of a look-up for an unknown value.

    The statement is prepared again each time, because a cached plan does not consider a new index.
    """
    connection.execute(f"prepare dbdyno_lookup as {lookup}")
    row = connection.execute("explain (format json) execute dbdyno_lookup (null)").fetchone()
    connection.execute("deallocate dbdyno_lookup")
    assert row is not None
    plan: JsonObject = row[0][0]["Plan"]
    return plan


def _nodes(plan: JsonObject) -> Iterator[JsonObject]:
    yield plan
    for one in plan.get("Plans", ()):
        yield from _nodes(one)
