"""The sum over the sub-intervals of an interval, as SQL.

Rows are folded (added up) in two steps: the sub-intervals of an hour into a row per key, which is cached, and then the
hours into the whole interval. A row counts what its good sub-intervals counted. `bad` is the number of sub-intervals
without a known difference; `least` says that an entry was evicted, so that the count is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.base.sql_text import literal, quoted
from dbdyno.snapshot.engines.view import WORDS, Column
from dbdyno.snapshot.reading.difference import Sides

FOLD_COLUMNS = ("good", "bad", "word", "bad_why", "least", "last_part", "last_life")
"""The columns of a folded row besides keys, texts and counters."""


def fold_parts(source: str, columns: Sequence[Column]) -> str:
    """Return SQL that folds rows of sub-intervals by key; `columns` are the columns of the source."""
    keys, shown = _added(columns, "part")
    ok = "verdict in ('ok', 'evicted') and life <> 'gone'"
    shown += [
        f"count(*) filter ({ok}) as good",
        f"count(*) filter (not ({ok}) and life <> 'gone') as bad",
        f"max({_rank('verdict')}) filter (not ({ok})) as word",
        f"arg_min(why, part) filter (not ({ok}) or verdict = 'evicted') as bad_why",
        "bool_or(verdict = 'evicted' and life <> 'gone') as least",
        "max(part) as last_part",
        "arg_max(life, part) as last_life",
    ]
    return f"select {', '.join(shown)} from {source} {_grouped(keys)}"


def fold_folded(source: str, columns: Sequence[Column]) -> str:
    """Return SQL that folds folded rows further."""
    keys, shown = _added(columns, "last_part")
    shown += [
        "sum(good) as good",
        "sum(bad) as bad",
        "max(word) as word",
        "arg_min(bad_why, last_part) filter (bad_why is not null) as bad_why",
        "bool_or(least) as least",
        "max(last_part) as last_part",
        "arg_max(last_life, last_part) as last_life",
    ]
    return f"select {', '.join(shown)} from {source} {_grouped(keys)}"


def _added(columns: Sequence[Column], latest: str) -> tuple[list[str], list[str]]:
    """Return the columns to group by, and a select list with these columns, the latest texts and sums of counters."""
    keys = [quoted(c.name) for c in columns if c.kind == "key"]
    shown = [*keys]
    for c in columns:
        name = quoted(c.name)
        if c.kind == "text":
            shown.append(f"arg_max({name}, {latest}) as {name}")
        elif c.kind in ("counter", "sum"):
            shown.append(f"sum({name})::{c.type} as {name}")
    return keys, shown


def total_sql(sides: Sides, before: str, after: str, folded: str, columns: Sequence[Column], parts: int) -> str:
    """Return a query that computes how the rows of a view changed over an interval.

    It is like `difference_sql` of both ends, with counts added up over `parts` sub-intervals. `folded` is a query with
    `columns`.
    """
    keys = [quoted(key) for key in sides.keys]
    of_ends = [f"coalesce(b.{key}, a.{key})" for key in keys]
    shown = [f"coalesce(b.{key}, a.{key}, s.{key}) as {key}" for key in keys]
    shown += _shown(sides, {c.name for c in columns if c.kind in ("text", "counter", "sum")})
    return f"""
with a as (select *, true as there from {before}), b as (select *, true as there from {after}),
s as (select *,
    case when bad >= {parts} then {_word("word")} when least then 'evicted' else 'ok' end as verdict,
    verdict not in ('ok', 'evicted') as lost
  from ({folded}))
select {", ".join(shown)},
  case when a.there and b.there then 'kept' when b.there then 'new' else 'gone' end as life,
  coalesce(s.verdict, 'ok') as verdict,
  case when s.verdict = 'evicted' then 'at least: ' || replace(coalesce(s.bad_why, ''), 'at least: ', '')
    when s.bad >= {parts} then s.bad_why
    when s.bad > 0 then ({parts} - s.bad) || ' of {parts} sub-intervals; ' || coalesce(s.bad_why, '')
    when b.there is null then 'was there before, is not any more'
    when a.there is null then 'created in between' else '' end as why
from a full join b on {_same([f"a.{key}" for key in keys], [f"b.{key}" for key in keys])}
  full join s on {_same(of_ends, [f"s.{key}" for key in keys])}
"""


def _same(left: Sequence[str], right: Sequence[str]) -> str:
    return " and ".join(f"{a} is not distinct from {b}" for a, b in zip(left, right, strict=True)) or "true"


def _shown(sides: Sides, summed: set[str]) -> list[str]:
    """Return the select list of the non-key columns; `summed` are the columns for which the relation `s` has sums.

    The list is kept short, because an interval has a dozen of these queries: parsing them took more time than reading
    the rows.
    """
    found = []
    common = {c.name for c in sides.common}
    for c in sides.after:
        if c.name in sides.keys:
            continue
        name = quoted(c.name)
        old = [f"a.{name}"] if c.name in common else []
        added = [f"s.{name}"] if c.name in summed else []
        if c.kind in ("counter", "sum"):
            there = f"coalesce({', '.join([f'b.{name}', *old])})"
            # Without a sum, 0 if an end has a value: 0 times a value is NULL if the value is.
            found.append(f"if(lost, null, coalesce({', '.join([*added, f'0 * {there}'])})) as {name}")
        elif c.kind in ("text", "key"):
            found.append(f"coalesce({', '.join([f'b.{name}', *old, *added])}) as {name}")
        else:
            found.append(f"b.{name} as {name}")
            if c.kind in ("gauge", "low", "high"):
                found.append(f"{old[0] if old else f'null::{c.type}'} as {quoted(c.name + '_before')}")
    return found


def _rank(name: str) -> str:
    words = " ".join(f"when {literal(word)} then {at}" for at, word in enumerate(WORDS))
    return f"case {name} {words} end"


def _word(name: str) -> str:
    words = " ".join(f"when {at} then {literal(word)}" for at, word in enumerate(WORDS))
    return f"case {name} {words} else 'partial' end"


def _grouped(keys: Sequence[str]) -> str:
    return f"group by {', '.join(keys)}" if keys else ""
