"""The sum over the sub-intervals of an interval, as SQL.

Rows are folded twice, with the same meaning: the parts of an hour into a row per key (cached with them), and hours into
the whole interval. A row counts what its good sub-intervals counted. `bad` is the number of those without a known
difference; `least` says that an entry was evicted, so that the count is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.snapshot.engines.view import WORDS, Column
from dbdyno.snapshot.reading.difference import Sides, quoted
from dbdyno.snapshot.store.parquet import literal

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
    """Return the query of a view's difference over an interval.

    It is like `difference_sql` of both ends, with counts added up over `parts` sub-intervals. `folded` is a query with
    `columns`.
    """
    keys = [quoted(key) for key in sides.keys]
    known = {c.name for c in columns}
    others = [c for c in sides.after if c.name not in sides.keys]
    in_s = [c.name for c in others if c.name in known and c.kind in ("text", "counter", "sum")]
    joined = [f"coalesce(e.{k}, s.{k}) as {k}" for k in keys]
    joined += [f"e.* exclude ({', '.join([*keys, 'life'])})"]
    joined += [f"s.{quoted(name)} as {quoted(name + '_s')}" for name in in_s]
    return f"""
with a as (select *, true as there from {before}), b as (select *, true as there from {after}),
e as (select {", ".join(_of_ends(sides, others))},
    case when a.there and b.there then 'kept' when b.there then 'new' else 'gone' end as life
  from a full join b on {_same("a", "b", keys)}),
s as ({folded}),
judged as (select {", ".join([*joined, "coalesce(e.life, 'gone') as life", "coalesce(s.bad, 0) as bad", "s.bad_why"])},
    case when coalesce(s.bad, 0) >= {parts} then {_word("s.word")} when s.least then 'evicted' else 'ok' end as verdict,
    verdict in ('ok', 'evicted') as known_
  from e full join s on {_same("e", "s", keys)})
select {", ".join(_shown(keys, others, in_s))}, life, verdict,
  case when verdict = 'evicted' then 'at least: ' || replace(coalesce(bad_why, ''), 'at least: ', '')
    when bad >= {parts} then bad_why
    when bad > 0 then ({parts} - bad) || ' of {parts} sub-intervals; ' || coalesce(bad_why, '')
    when life = 'gone' then 'was there before, is not any more'
    when life = 'new' then 'created in between' else '' end as why
from judged
"""


def _same(left: str, right: str, keys: Sequence[str]) -> str:
    return " and ".join(f"{left}.{k} is not distinct from {right}.{k}" for k in keys) or "true"


def _of_ends(sides: Sides, others: Sequence[Column]) -> list[str]:
    """Return the select list with the keys, and the values of both ends under separate names."""
    common = {c.name for c in sides.common}
    found = [f"coalesce(b.{quoted(k)}, a.{quoted(k)}) as {quoted(k)}" for k in sides.keys]
    for c in others:
        if c.kind in ("counter", "sum"):  # of which only the sums are shown
            either = [f"{side}.{quoted(c.name)} is not null" for side in ("a", "b") if side == "b" or c.name in common]
            found.append(f"{' or '.join(either)} as {quoted(c.name + '_there')}")
            continue
        old = f"a.{quoted(c.name)}" if c.name in common else f"null::{c.type}"
        found += [f"{old} as {quoted(c.name + '_a')}", f"b.{quoted(c.name)} as {quoted(c.name + '_b')}"]
    return found


def _shown(keys: Sequence[str], others: Sequence[Column], in_s: Sequence[str]) -> list[str]:
    found = list(keys)
    for c in others:
        name, old, new = (quoted(c.name + end) for end in ("", "_a", "_b"))
        added = quoted(c.name + "_s") if c.name in in_s else f"null::{c.type}"
        if c.kind in ("counter", "sum"):
            still = f"case when {quoted(c.name + '_there')} then 0 end"
            found.append(f"case when known_ then coalesce({added}, {still}) end as {name}")
        elif c.kind in ("text", "key"):
            found.append(f"coalesce({new}, {old}, {added}) as {name}")
        else:
            found.append(f"{new} as {name}")
            if c.kind in ("gauge", "low", "high"):
                found.append(f"{old} as {quoted(c.name + '_before')}")
    return found


def _rank(name: str) -> str:
    words = " ".join(f"when {literal(word)} then {at}" for at, word in enumerate(WORDS))
    return f"case {name} {words} end"


def _word(name: str) -> str:
    words = " ".join(f"when {at} then {literal(word)}" for at, word in enumerate(WORDS))
    return f"case {name} {words} else 'partial' end"


def _grouped(keys: Sequence[str]) -> str:
    return f"group by {', '.join(keys)}" if keys else ""
