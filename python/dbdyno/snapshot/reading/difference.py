"""The difference of one view between two snapshots, as SQL that gives every row a verdict.

Values may only be subtracted within one life of a row. A row's life ended in between if a counter fell, the start of
its life moved, a lifetime's minimum rose or its maximum fell, or an instant went back or became NULL. Then no number of
that row is known, and the row says so; it is never left out, negative or clamped. For an entry that appeared or
reappeared while entries were evicted, or after all were reset, the value is a lower bound. The scope (a database, the
shared counters) can invalidate its rows too: the engine decides that by its epochs.

Columns of the result: keys; texts and gauges of the later snapshot (`<gauge>_before` of the earlier one); counters as
differences, NULL if unknown; `life` (kept, new, gone), `verdict`, `why`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.base.sql_text import literal, quoted
from dbdyno.snapshot.engines.view import Column

SUBTRACTED = ("counter", "sum")


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns that a view had before and after, and its `appearance`: the meaning of a new row."""

    name: str
    before: tuple[Column, ...]
    after: tuple[Column, ...]
    appearance: str
    scope_by: str | None

    @property
    def keys(self) -> list[str]:
        """Return the key columns that both sides have, by which their rows are matched."""
        old = {c.name for c in self.before if c.kind == "key"}
        return [c.name for c in self.after if c.kind == "key" and c.name in old]

    @property
    def common(self) -> list[Column]:
        """Return the columns of the later snapshot that the earlier one has with the same kind."""
        old = {(c.name, c.kind) for c in self.before}
        return [c for c in self.after if (c.name, c.kind) in old]


def difference_sql(sides: Sides, before: str, after: str, *, scoped: bool = True) -> str:
    """Return the query that computes a view's difference from the relations `before` and `after`.

    With `scoped` it also uses the table `scope_verdicts` (part, view, value, word, why); without it the view's scopes
    have no verdict. If `part` is a key, the relations hold many pairs of snapshots; otherwise the pair's part is 0.
    """
    if not scoped and before == after and sides.before == sides.after:
        return _unchanged_sql(sides, after)
    scope = ", (select null::varchar as word, null::varchar as why) s"
    if scoped:
        part = "p.part" if "part" in sides.keys else "0"
        scope = (
            f"left join scope_verdicts s on s.view = {literal(sides.name)} and s.part = {part}"
            f" and s.value is not distinct from {_scope_value(sides)}"
        )
    joined = " and ".join(f"a.{quoted(k)} is not distinct from b.{quoted(k)}" for k in sides.keys)
    return f"""
with a as (select *, true as there from {before}), b as (select *, true as there from {after}),
pairs as (
  select {", ".join(_taken(sides))},
    case when a.there and b.there then 'kept' when b.there then 'new' else 'gone' end as life,
    {_broken(sides)} as broken
  from a full join b on {joined or "true"}
),
judged as (
  select p.*, s.word as scope_word, s.why as scope_why,
    {_verdict(sides)} as verdict,
    verdict = 'ok' and life = 'kept' as subtracted,
    (verdict = 'ok' and life = 'new') or (verdict = 'evicted' and life <> 'gone') as begun
  from pairs p {scope}
)
select {", ".join(_shown(sides))}, life, verdict,
  case when verdict = 'ok' then case life when 'new' then 'created in between' else '' end
    when verdict = 'evicted' and life <> 'gone' then 'at least: ' || scope_why
    when scope_why is not null and (verdict = scope_word) then scope_why
    when broken <> '' then 'began again: ' || broken
    when life = 'gone' then 'was there before, is not any more'
    when life = 'new' then 'was not there before' else '' end as why
from judged
"""


def _unchanged_sql(sides: Sides, relation: str) -> str:
    """Return the query for a view whose rows are the same file before and after.

    Every row was kept, no counter fell, and no instant moved.
    """
    found = [quoted(key) for key in sides.keys]
    for column in sides.after:
        name = quoted(column.name)
        if column.name in sides.keys:
            continue
        found.append(f"{name} - {name} as {name}" if column.kind in SUBTRACTED else name)
        if column.kind in ("gauge", "low", "high"):
            found.append(f"{name} as {quoted(column.name + '_before')}")
    return f"select {', '.join(found)}, 'kept' as life, 'ok' as verdict, '' as why from {relation}"


def _taken(sides: Sides) -> list[str]:
    """Return the select list with the values of both sides under separate names."""
    common = {c.name for c in sides.common}
    found = [f"coalesce(b.{quoted(k)}, a.{quoted(k)}) as {quoted(k)}" for k in sides.keys]
    for column in sides.after:
        name = quoted(column.name)
        if column.name in sides.keys:
            continue
        old = f"a.{name}" if column.name in common else f"null::{column.type}"
        found += [
            f"{old} as {quoted(column.name + '_a')}",
            f"b.{name} as {quoted(column.name + '_b')}",
        ]
    return found


def _broken(sides: Sides) -> str:
    """Return SQL that says which column shows that a row was reset, such as a counter that fell; '' if none does."""
    tests = []
    for column in sides.common:
        old, new = f"a.{quoted(column.name)}", f"b.{quoted(column.name)}"
        test = {
            "counter": f"{new} < {old}",
            "since": f"{new} is distinct from {old}",
            "time": f"{old} is not null and ({new} is null or {new} < {old})",
            "low": f"{old} > 0 and {new} > {old}",
            "high": f"{new} < {old}",
        }.get(column.kind)
        if test:
            said = {"counter": "fell", "since": "moved"}.get(column.kind, "went back")
            tests.append(f"when {test} then {literal(column.name + ' ' + said)}")
    if not tests:
        return "''"
    return f"case when not (a.there and b.there) then '' {' '.join(tests)} else '' end"


def _verdict(sides: Sides) -> str:
    """Return SQL for the graver of the verdicts of scope and row."""
    only_new = {"object": "'ok'", "entry": "coalesce(s.word, 'ok')", "fixed": "'partial'"}
    gone = {"entry": "coalesce(s.word, 'reset')"}.get(sides.appearance, "'partial'")
    since = "when s.word = 'reset' and life <> 'gone' then 'evicted'" if sides.appearance == "entry" else ""
    return f"""case {since}
      when s.word is not null and s.word <> 'evicted' then s.word
      when life = 'new' then {only_new[sides.appearance]}
      when life = 'gone' then {gone}
      when broken <> '' then coalesce(s.word, 'reset')
      else 'ok' end"""


def _scope_value(sides: Sides) -> str:
    if sides.scope_by is None:
        return "null::varchar"
    name = sides.scope_by if sides.scope_by in sides.keys else f"{sides.scope_by}_b"
    return f"p.{quoted(name)}::varchar"


def _shown(sides: Sides) -> list[str]:
    common = {c.name for c in sides.common}
    found = [quoted(key) for key in sides.keys]
    for column in sides.after:
        if column.name in sides.keys:
            continue
        name, old, new = (quoted(column.name + end) for end in ("", "_a", "_b"))
        if column.kind in SUBTRACTED:
            found.append(f"{_subtracted(column, common, old, new)} as {name}")
        elif column.kind in ("text", "key"):
            found.append(f"coalesce({new}, {old}) as {name}")
        else:
            found.append(f"{new} as {name}")
            if column.kind in ("gauge", "low", "high"):
                found.append(f"{old} as {quoted(column.name + '_before')}")
    return found


def _subtracted(column: Column, common: set[str], old: str, new: str) -> str:
    """Return SQL for a counter's difference.

    It is b - a within one life. For a new row, or an entry that was evicted and reappeared, it is b, a lower bound. For
    a column that the earlier snapshot did not have, it is NULL unless the row is new.
    """
    if column.name not in common:
        return f"case when begun then {new} end"
    kept = f"subtracted and not ({new} < {old})" if column.kind == "sum" else "subtracted"
    start = f"coalesce({old}, 0)" if column.kind == "sum" else old
    return f"case when begun then {new} when {kept} then {new} - {start} end"


def union_columns(columns: Sequence[Column]) -> str:
    """Return an SQL relation with these columns and no rows."""
    shown = ", ".join(f"null::{c.type} as {quoted(c.name)}" for c in columns)
    return f"(select {shown} where false)"
