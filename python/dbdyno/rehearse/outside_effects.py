"""Functions, tables and views with effects that a rollback does not undo, found in the catalog.

The body of each function is searched for calls that are known to have such effects, and so is everything that the
server executes when a table is read or written: triggers, rules, views, defaults, checks, policies, partitions, and
foreign keys that cascade. The search is repeated until nothing more is found. Names are compared without their schema,
and a name in a literal counts, so that in doubt a statement is left out rather than executed. Operators, casts and
checks of domains are not searched.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.effects import (
    FOREIGN_TABLE,
    OutsideEffects,
    WordSet,
    function_word,
    has_outside_effect,
    table_word,
    words_of,
)

_HARMLESS = [
    "citext",
    "cube",
    "fuzzystrmatch",
    "hstore",
    "intarray",
    "isn",
    "ltree",
    "pageinspect",
    "pg_buffercache",
    "pg_freespacemap",
    "pg_stat_statements",
    "pg_trgm",
    "pg_visibility",
    "pgcrypto",
    "pgrowlocks",
    "pgstattuple",
    "postgis",
    "seg",
    "sslinfo",
    "tablefunc",
    "tsm_system_rows",
    "tsm_system_time",
    "unaccent",
    "uuid-ossp",
    "vector",
]
"""Extensions whose volatile functions write nothing."""
_FUNCTIONS: LiteralString = """
select p.proname, case when a.aggfnoid is not null
    then concat_ws(' ', a.aggtransfn || '()', a.aggfinalfn || '()', a.aggcombinefn || '()')
    when l.lanname in ('c', 'internal') then '' else pg_get_functiondef(p.oid) end,
  p.provolatile = 'v' and not l.lanpltrusted and l.lanname <> 'internal' and coalesce(e.extname, '') <> all(%s),
  p.provolatile = 'v'
from pg_proc p join pg_language l on l.oid = p.prolang join pg_namespace n on n.oid = p.pronamespace
left join pg_aggregate a on a.aggfnoid = p.oid
left join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
left join pg_extension e on e.oid = d.refobjid and d.refclassid = 'pg_extension'::regclass
where n.nspname not in ('pg_catalog', 'information_schema')
"""
_EXECUTED: LiteralString = """
select c.relname, x.is_write, x.executed from pg_class c join pg_namespace n on n.oid = c.relnamespace join (
  select tgrelid, true, p.proname || '()' from pg_trigger join pg_proc p on p.oid = tgfoid where tgenabled <> 'D'
  union all select ev_class, ev_type <> '1', pg_get_ruledef(oid) from pg_rewrite
  union all select ev_class, true, pg_get_ruledef(oid) || ' update' from pg_rewrite where ev_type = '1'
  union all select adrelid, true, pg_get_expr(adbin, adrelid) from pg_attrdef
  union all select conrelid, true, pg_get_constraintdef(oid) from pg_constraint where contype = 'c' and conrelid <> 0
  union all select confrelid, true, quote_ident(r.relname) || ' update' from pg_constraint
    join pg_class r on r.oid = conrelid where contype = 'f'
  union all select polrelid, w, concat_ws(' ', pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
    from pg_policy, unnest(array[true, false]) w
  union all select inhparent, w, quote_ident(r.relname) || case when w then ' update' else '' end from pg_inherits
    join pg_class r on r.oid = inhrelid and r.relkind in ('r', 'p', 'f'), unnest(array[true, false]) w
) x (oid, is_write, executed) on x.oid = c.oid
where n.nspname not in ('pg_catalog', 'information_schema') and x.executed is not null
"""
_FOREIGN: LiteralString = "select relname from pg_class where relkind = 'f'"
_COPIES = re.compile(r"\bcopy\b[^;]*\b(?:to|from)\s+(?:program\b|e?')", re.I)


def read_outside_effects(*servers: Postgres, allowed: Collection[str] = ()) -> OutsideEffects:
    """Return the functions, tables and views of these servers' databases with effects that a rollback does not undo.

    Args:
        servers: The databases.
        allowed: Functions and tables that the user allows nevertheless, without their schema.

    Raises:
        TargetError: A server does not answer, or does not show its functions; or none has a function or table of an
            allowed name.
    """
    found = _Found()
    for server in servers:
        with contextlib.closing(server.connect(statement_timeout_ms=60_000, read_only=True)) as conn:
            try:
                _read(found, conn)
            except psycopg.Error as error:
                raise TargetError(
                    f"the functions and triggers of the database cannot be read: {str(error).splitlines()[0]}",
                    where=server.safe_dsn,
                    next_step="correct the cause; dbdyno must search them for effects that a rollback does not undo",
                ) from None
    names = frozenset(table_word(name) for name in allowed)
    known = {name for name, _, _ in found.pending} | found.functions.keys() | found.read.keys()
    if strange := sorted(name for name in names - known if not has_outside_effect(name)):
        raise TargetError(
            f"--allow {strange[0]}: there is neither a function of this name nor a table of "
            "this name that executes functions",
            where=servers[0].safe_dsn,
            next_step="copy the name from the list of statements that were not rehearsed, on the page",
        )
    outside = OutsideEffects(found.functions, found.read, found.written, frozenset(found.volatile), names)
    while sum(_is_added(outside, *one) for one in found.pending):
        pass
    return outside


@dataclass
class _Found:
    """Objects that have been read so far; `pending` has the words in the bodies of functions, triggers and views."""

    functions: dict[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    volatile: set[str] = field(default_factory=set)
    pending: list[tuple[str, dict[str, str], WordSet]] = field(default_factory=list)


def _read(found: _Found, conn: psycopg.Connection[Any]) -> None:
    for name, body, reaches_out, is_volatile in conn.execute(_FUNCTIONS, [_HARMLESS]):
        word = function_word(name)
        if is_volatile:
            found.volatile.add(word)
        if reaches_out:
            found.functions[word] = word
        elif _COPIES.search(body):
            found.functions[word] = "a file or a program by COPY"
        found.pending.append((word, found.functions, words_of(body)))
    for name, is_write, executed in conn.execute(_EXECUTED):
        found.pending.append((table_word(name), found.written if is_write else found.read, words_of(executed)))
    for (name,) in conn.execute(_FOREIGN):
        found.read[table_word(name)] = f"{FOREIGN_TABLE} {table_word(name)}"


def _is_added(outside_effects: OutsideEffects, name: str, names: dict[str, str], executed: WordSet) -> bool:
    """Add a function or table to `names` if what it executes has outside effects; return True if it was added.

    An outside effect is one that a rollback does not undo.
    """
    if name in names or (reached := outside_effects.find_effect(executed)) is None:
        return False
    names[name] = reached[2]
    return True
