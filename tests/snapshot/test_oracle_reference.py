"""Each query of the Oracle collector is valid Oracle SQL on views and columns of the public reference."""

from __future__ import annotations

import pytest
from oracle_columns import C12, COLUMNS, OLD

from dbdyno.snapshot.engines.oracle.check import empty_query
from dbdyno.snapshot.engines.oracle.scripts import script, script_names

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed: pip install 'dbdyno[test]'")
PSEUDO = {"systimestamp", "rownum", "sysdate"}


def parsed(sql: str):
    (tree,) = sqlglot.parse(sql, dialect="oracle")
    return tree


@pytest.mark.parametrize("name", script_names())
def test_a_query_reads_known_columns_of_known_views_and_nothing_else(name: str):
    tree = parsed(script(name).sql.replace(":ids", ":i0"))
    assert isinstance(tree, sqlglot.exp.Select)
    views = {table.name.lower() for table in tree.find_all(sqlglot.exp.Table)}
    assert views and views <= set(COLUMNS), views - set(COLUMNS)
    known = {column for view in views for column in COLUMNS[view]}
    made = {alias.alias.lower() for alias in tree.find_all(sqlglot.exp.Alias)}
    used = {column.name.lower() for column in tree.find_all(sqlglot.exp.Column)} - PSEUDO - {"*"}
    assert used - made <= known, used - made - known


@pytest.mark.parametrize("name", script_names())
def test_a_query_gives_the_columns_that_its_head_says_in_their_order(name: str):
    tree = parsed(script(name).sql.replace(":ids", ":i0"))
    assert [one.alias_or_name.lower() for one in tree.selects] == [column.name for column in script(name).columns]


def test_what_release_11_2_has_not_is_what_the_docs_say() -> None:
    """Columns and contexts of containers, and the histogram in microseconds: the collector asks for 12.1 or later."""
    late: dict[str, set[str]] = {}
    for name in script_names():
        tree = parsed(script(name).sql.replace(":ids", ":i0"))
        views = [COLUMNS[table.name.lower()] for table in tree.find_all(sqlglot.exp.Table)]
        used = {column.name.lower() for column in tree.find_all(sqlglot.exp.Column)}
        contexts = {one.name for one in tree.find_all(sqlglot.exp.Literal) if one.name.startswith("con_")}
        found = contexts | {c for c in used if any(view.get(c) == C12 for view in views)}
        if found - {c for view in views for c, release in view.items() if release == OLD}:
            late[name] = found
    assert late.keys() == {"event_histogram_micro", "instance", "segment_statistics", "session"}
    assert late["segment_statistics"] == late["instance"] == {"con_id"} and late["session"] == {"con_name"}


@pytest.mark.parametrize("name", script_names())
def test_the_check_reads_no_row(name: str):
    sql, binds = empty_query(name)
    tree = parsed(sql)
    assert "rownum < 1" in tree.sql(dialect="oracle").lower()
    assert {one.name for one in tree.find_all(sqlglot.exp.Placeholder)} == set(binds)
