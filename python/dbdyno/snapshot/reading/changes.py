"""Objects created, dropped or changed from one period to the other: tables, indexes, columns, users, settings, more.

The ends of the two periods that are farthest apart are compared: what was created and dropped in between does not
appear. When a change happened is found by bisecting the snapshots of both periods, so that a month takes a dozen reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.errors import EvidenceError
from dbdyno.base.sections import Row
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.reading.changed_settings import OWN_SETTINGS, SETTINGS
from dbdyno.snapshot.reading.periods import Period
from dbdyno.snapshot.store.folder import Snapshot, Store

MOST = 40
"""Largest number of rows shown for each kind of object."""
Known = Mapping[Any, tuple[str, str]]
"""The objects of one kind in a snapshot: name and value by key."""


@dataclass(frozen=True)
class Kind:
    """A kind of object that can be created, dropped or changed.

    Attributes:
        noun: Its name in words.
        view: The view from which it is read, `a` in SQL.
        key: SQL of its key.
        name: SQL of its name.
        value: SQL of the value that can change.
        also: A second view, `b` in SQL.
        on: The condition that joins the two views.
        of_table: True if the first two columns of the key are a table, which both ends must have.
        needs: A column of `view` that is missing in stores of earlier versions.
    """

    noun: str
    view: str
    key: str
    name: str
    value: str = "''"
    also: str = ""
    on: str = ""
    of_table: bool = False
    needs: str = ""


POSTGRES = (
    Kind("database", "pg_stat_database", "a.datid", "a.datname"),
    Kind("table", "pg_stat_user_tables", "a.datid, a.relid", "a.datname || '.' || a.schemaname || '.' || a.relname"),
    Kind(
        "column",
        "pg_attribute",
        "a.datid, a.attrelid, a.attnum",
        "a.datname || '.' || b.schemaname || '.' || b.relname || '.' || a.attname",
        "a.type || case when a.attnotnull then ' not null' else '' end",
        "pg_stat_user_tables",
        "b.datid = a.datid and b.relid = a.attrelid",
        of_table=True,
    ),
    Kind(
        "index",
        "pg_stat_user_indexes",
        "a.datid, a.indexrelid",
        "a.datname || '.' || a.schemaname || '.' || a.indexrelname",
        "'on ' || a.relname",
    ),
    Kind("replication slot", "pg_replication_slots", "a.slot_name", "a.slot_name", "coalesce(a.slot_type, '')"),
    Kind(
        "storage parameters",
        "pg_class",
        "a.datid, a.oid",
        "a.datname || '.' || b.schemaname || '.' || b.relname",
        "coalesce(a.options, '')",
        "pg_stat_user_tables",
        "b.datid = a.datid and b.relid = a.oid",
        of_table=True,
        needs="options",
    ),
    Kind(
        "kept setting",
        "pg_db_role_setting",
        "a.setdatabase, a.setrole, a.name",
        "a.name || case when a.setrole = 0 then '' else ' of role ' || coalesce(a.role, a.setrole::varchar) end"
        " || case when a.setdatabase = 0 then '' else ' in database ' || coalesce(a.of_database, '') end",
        "a.setting",
    ),
    Kind("function", "pg_proc", "a.datid, a.oid", "a.datname || '.' || a.name", "coalesce(a.settings, '')"),
    Kind(
        "foreign key",
        "pg_constraint",
        "a.datid, a.oid",
        "a.datname || '.' || b.relname || '.' || a.conname",
        "a.columns",
        "pg_stat_user_tables",
        "b.datid = a.datid and b.relid = a.conrelid",
    ),
    Kind(
        "trigger",
        "pg_trigger",
        "a.datid, a.oid",
        "a.datname || '.' || b.relname || '.' || a.tgname",
        also="pg_stat_user_tables",
        on="b.datid = a.datid and b.relid = a.tgrelid",
    ),
    Kind(
        "statistics object",
        "pg_statistic_ext",
        "a.datid, a.oid",
        "a.datname || '.' || b.relname || '.' || a.stxname",
        also="pg_stat_user_tables",
        on="b.datid = a.datid and b.relid = a.stxrelid",
    ),
    Kind("sequence", "pg_sequence", "a.datid, a.seqrelid", "a.datname || '.' || a.name", "'cache ' || a.seqcache"),
)
MARIADB = (
    Kind(
        "index",
        "table_io_waits_summary_by_index_usage",
        "a.OBJECT_SCHEMA, a.OBJECT_NAME, a.INDEX_NAME",
        "a.OBJECT_SCHEMA || '.' || a.OBJECT_NAME || '.' || a.INDEX_NAME",
        also="table_io_waits_summary_by_table",
        on="b.OBJECT_SCHEMA = a.OBJECT_SCHEMA and b.OBJECT_NAME = a.OBJECT_NAME",
        of_table=True,
    ),
)
KINDS: Mapping[str, Sequence[Kind]] = {"postgres": POSTGRES, "mariadb": MARIADB}
NOT_READ = {
    "mariadb": "tables, columns, databases and users: not read from MariaDB; indexes: only of tables in use",
    "oracle": "tables, indexes, columns and users: not read from Oracle",
}


def changes(store: Store, one: Period, other: Period) -> tuple[list[Row], list[str]]:
    """Return the changes from one period to the other, by kind, and notes on what is not known."""
    chain = sorted({end.number: end for end in (*one.chain, *other.chain)}.values(), key=lambda end: end.number)
    back = one.chain[0].number > other.chain[0].number
    first, second = (chain[-1], chain[0]) if back else (chain[0], chain[-1])
    rows: list[Row] = []
    notes = [NOT_READ[first.engine]] if first.engine in NOT_READ else []
    for noun, states in _states(store, first):
        old, new = states.states_of(first), states.states_of(second)
        if old is None or new is None:
            notes += [f"{noun}s: not known for both periods"] if noun == "column" else []
            continue
        found = list(_between(noun, old, new, of_table=states.of_table))
        shown = found[:MOST]
        for row in shown:
            row["when"] = _when(states, chain, row.pop("key"))
        rows += shown
        if len(found) > len(shown):
            counts = Counter(row["change"] for row in found[MOST:])
            notes.append(f"{noun}: " + ", ".join(f"{count} more {word}" for word, count in counts.items()))
    return rows, notes


class States:
    """Objects of one kind in snapshots; rows that several snapshots share are read only once."""

    def __init__(self, store: Store, kind: Kind | None) -> None:
        self._store = store
        self._kind = kind
        self.of_table = kind is not None and kind.of_table
        self._read: dict[Any, Known] = {}

    def states_of(self, snapshot: Snapshot) -> Known | None:
        """Return name and value of each object by its key, or None if the snapshot has no readable rows of this kind.

        Raises:
            EvidenceError: A file of the store cannot be read.
        """
        whole = self._store.open(snapshot.number)  # a snapshot from the index has only a part of its facts
        if self._kind is None:
            roles = whole.facts.get("roles")
            return None if roles is None else {key: (str(name), "") for key, name in roles.items()}
        views = [view for view in (self._kind.view, self._kind.also) if view]
        places = tuple(whole.place(view) for view in views)
        if any(whole.problem(view) or whole.place(view) is None for view in views):
            return None
        if self._kind.needs and self._kind.needs not in {column.name for column in whole.columns(self._kind.view)}:
            return None
        if places not in self._read:
            while len(self._read) >= 4:
                del self._read[next(iter(self._read))]
            self._read[places] = self._of(whole, self._kind)
        return self._read[places]

    def _of(self, snapshot: Snapshot, kind: Kind) -> Known:
        from dbdyno.evidence.duck import duckdb

        joined = f" join {snapshot.relation(kind.also)} b on {kind.on}" if kind.also else ""
        with file_connection(in_order=True) as connection:
            try:
                rows = connection.execute(
                    f"select {kind.name}, {kind.value}, {kind.key} from {snapshot.relation(kind.view)} a{joined}"
                    f" where {kind.name} is not null"
                ).fetchall()
            except duckdb.Error as error:
                raise EvidenceError(
                    str(error).splitlines()[0], where=f"{kind.view} of snapshot {snapshot.number}"
                ) from error
        return {tuple(key): (str(name), str(value)) for name, value, *key in rows}


def _states(store: Store, snapshot: Snapshot) -> Iterator[tuple[str, States]]:
    """Yield each kind of object and setting that a snapshot of this engine has, with its noun for sentences."""
    for kind in KINDS.get(snapshot.engine, ()):
        yield kind.noun, States(store, kind)
    if snapshot.engine == "postgres":
        yield "user", States(store, None)
    view = next((name for name in SETTINGS if name in snapshot.views), None)
    if view is not None:
        yield "setting", States(store, Kind("setting", view, "a.name", "a.name", f"coalesce(a.{SETTINGS[view]}, '')"))


def _between(noun: str, old: Known, new: Known, *, of_table: bool) -> Iterator[Row]:
    """Yield the changes by name; an object with another key under the same name was recreated."""
    hidden = OWN_SETTINGS if noun == "setting" else ()
    keys = [key for key in (*old, *(key for key in new if key not in old)) if old.get(key) != new.get(key)]
    if of_table:  # changes of a created or dropped table's objects add nothing
        tables = [{key[:2] for key in side} for side in (old, new)]
        keys = [key for key in keys if key[:2] in tables[0] and key[:2] in tables[1]]
    gone = {old[key][0]: key for key in keys if key not in new}
    came = {new[key][0]: key for key in keys if key not in old}
    for key in sorted(keys, key=lambda key: (new.get(key) or old[key])[0]):
        name = (new.get(key) or old[key])[0]
        if name in hidden or (key in gone.values() and name in came):
            continue
        was, now = (side.get(key) for side in (old, new))
        row: Row = {"kind": noun, "what": name, "key": key, "first": None, "second": None}
        if was is None and name in gone:
            yield row | {"change": "recreated", "first": old[gone[name]][1] or None, "second": new[key][1] or None}
        elif was is None:
            yield row | {"change": "came", "second": new[key][1] or None}
        elif now is None:
            yield row | {"change": "went", "first": was[1] or None}
        elif (
            was[0] != now[0]
            and noun != "storage parameters"
            and (not of_table or was[0].rpartition(".")[2] != now[0].rpartition(".")[2])
        ):
            yield row | {"change": "renamed", "first": was[0], "second": now[0]}
        elif was[1] != now[1]:  # otherwise its table was renamed
            yield row | {"change": "changed", "first": was[1], "second": now[1]}


def _when(states: States, chain: Sequence[Snapshot], key: Any) -> str:
    """Return between which two snapshots a change happened, found by bisection."""
    early = (states.states_of(chain[0]) or {}).get(key)
    low, high = 0, len(chain) - 1
    while high - low > 1:
        middle = (low + high) // 2
        known = states.states_of(chain[middle])
        if known is None:
            break
        low, high = (middle, high) if known.get(key) == early else (low, middle)
    before, after = chain[low], chain[high]
    day = "" if before.at_utc.date() == after.at_utc.date() else f"{after.at_utc:%Y-%m-%d} "
    return f"{before.at_utc:%Y-%m-%d %H:%M:%S} to {day}{after.at_utc:%H:%M:%S}"
