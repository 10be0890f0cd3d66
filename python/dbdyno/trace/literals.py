"""Statements that differ only in literals: missing bind variables, with their cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.trace.source import Traces

VARIANTS_MIN = 2


def findings(traces: Traces, limit: int = 10) -> list[dict[str, object]]:
    """Return groups of statements that differ only in literals, most costly parses first.

    Keys of a group: `force_match` (the common text), `statements` (number of texts), `executions`, `parses`, `misses`
    (hard parses), `parse_ns`, `elapsed_ns`, `examples` (two of the texts), `sentence`. The core writes `:n` in lower
    case for a literal, everything else in upper case.
    """
    rows = traces.rows(
        r"""
        with groups as (
          select force_key, any_value(force_match) as force_match, count(*) as statements,
                 array_agg(text order by first_file, first_line)[1:2] as examples
          from statements where force_key is not null and contains(force_match, ':n')
          group by force_key
          having count(distinct upper(regexp_replace(text, '\s+', ' ', 'g'))) >= $1),
        cost as (
          select s.force_key, count(*) filter (c.kind = 'parse') as parses,
                 count(*) filter (c.kind = 'exec') as executions,
                 sum(coalesce(c.misses, 0))::bigint as misses,
                 coalesce(sum(coalesce(c.self_elapsed_ns, c.elapsed_ns))
                   filter (c.kind = 'parse'), 0)::bigint as parse_ns,
                 sum(coalesce(c.self_elapsed_ns, c.elapsed_ns))::bigint as elapsed_ns
          from calls c join statements s using (statement) group by s.force_key)
        select * exclude (force_key) from groups join cost using (force_key)
        order by parse_ns desc, statements desc limit $2
        """,
        [VARIANTS_MIN, limit],
    )
    return [row | {"sentence": _sentence(row)} for row in rows]


def _sentence(row: Mapping[str, Any]) -> str:
    parts = [
        _number(row["executions"], "execution", "executions") if row["executions"] else "",
        _number(row["parses"], "parse", "parses"),
        f"{row['misses']} of them hard" if row["misses"] else "",
    ]
    return (
        f"{row['statements']} statements differ only in literals:"
        f" {', '.join(part for part in parts if part)}. Bind variables would make them one."
    )


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
