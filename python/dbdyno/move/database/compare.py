"""Proof of a move: the target's rows are read again and compared by hash, and both schemas object by object.

Both schemas are dumped by the same pg_dump, because two versions of it may write the same object differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.base.core_types import MoveFinishedChunk
from dbdyno.base.errors import MoveError
from dbdyno.move.database.archive import Entry
from dbdyno.move.database.rows import is_sent_as_text, read_sql, without_masks
from dbdyno.move.database.schema import LEFT_OUT, by_stage, statements_of
from dbdyno.move.database.target import settings_sql
from dbdyno.move.database.work import Job
from dbdyno.move.engines.postgres.source import application_name, session_settings
from dbdyno.move.ledger.folder import MODULUS, Ledger
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.run import Plan
from dbdyno.move.reading.splits import TID_RANGES_SINCE, split

SIZES_SQL = """
select coalesce(pg_relation_size(o) / current_setting('block_size')::int, 0), coalesce(pg_table_size(o), 0)
from unnest(%s::text[]) with ordinality u(name, n), to_regclass(name) o order by n
"""
LOOK_S = 0.2
_BEFORE_DOT = re.compile(r'(?<![\w"])(?:"(?:[^"]|"")++"|[^\W\d]\w*+)\.(?=["\w])')
_BLANK = re.compile(r"[\s()]+")
Sum = tuple[int, int]
"""Number of rows, and the sum of their hashes."""


def sums_of(ledger: Ledger, plan: Plan) -> list[Sum]:
    """Return the number of rows and the hash of each table as they were read from the source."""
    table_of = {chunk.number: chunk.table for chunk in plan.chunks}
    found = [(0, 0)] * len(plan.tables)
    for number, one in ledger.records().items():
        rows, summed = found[table_of[number]]
        found[table_of[number]] = rows + one["rows"], (summed + int(one["hash"], 16)) % MODULUS
    return found


def read_again(work: Job, conn: psycopg.Connection[Any], plan: Plan) -> list[Sum]:
    """Read the target's tables and return the number of rows and the hash of each.

    Raises:
        MoveError: A table cannot be read.
    """
    options, show = work.how, work.meter()
    names = [sql.Identifier(one.schema, one.name).as_string(conn) for one in plan.tables]
    sizes = conn.execute(SIZES_SQL, [names]).fetchall()
    tables = [
        replace(table, relations=(replace(table.relations[0], blocks=blocks, bytes=size),))
        for table, (blocks, size) in zip(without_masks(plan.tables), sizes, strict=True)
    ]
    tid_ranges = conn.info.server_version >= TID_RANGES_SINCE
    chunks = split([("", table.relations) for table in tables], workers=options.workers, tid_ranges=tid_ranges)
    job = _core.MoveJob(
        {
            "connection": {**work.target.conninfo(), "application_name": application_name(plan.id)},
            "session_sql": [session_settings(conn, lasting=True), settings_sql(conn, work.database["encoding"])],
            "tables": [{"columns": [one.spec() for one in table.columns]} for table in tables],
            "chunks": [
                {
                    "number": chunk.number,
                    "table": chunk.table,
                    "sql": read_sql(conn, tables, chunk),
                    "path": None,
                    "raw": True,
                    "lines": is_sent_as_text(tables[chunk.table]),
                }
                for chunk in sorted(chunks, key=lambda one: -one.bytes)
            ],
            "workers": options.workers,
            "memory_bytes": options.memory_bytes,
            "rate_bytes_per_s": options.rate_bytes_per_s,
        }
    )
    found = [(0, 0)] * len(tables)
    whole = sum(chunk.bytes for chunk in chunks)
    read = 0
    for done in _completed_chunks(job):
        chunk = chunks[done["number"]]
        rows, summed = found[chunk.table]
        found[chunk.table] = rows + done["rows"], (summed + int(done["hash"], 16)) % MODULUS
        read += chunk.bytes
        if show is not None and read < whole:
            show(read / whole, read, whole)
    if show is not None and whole:
        show(1.0, whole, whole)
    return found


def _completed_chunks(job: _core.MoveJob) -> Iterator[MoveFinishedChunk]:
    """Yield the reports of completed chunks."""
    try:
        while (event := job.next(LOOK_S)) is not None:
            if "failed" in event:
                raise MoveError(event["failed"]["message"], where="reading the target again")
            done: MoveFinishedChunk | None = event.get("done")
            if done is not None:
                yield done
    finally:
        job.stop()


def differing_rows(plan: Plan, expected: Sequence[Sum], actual: Sequence[Sum]) -> list[str]:
    """Return a sentence for each table whose rows differ from the source's."""
    return [
        f"{table.schema}.{table.name}: {with_noun(there[0], 'row')}, hash {there[1]:032x}; the source has"
        f" {with_noun(here[0], 'row')}, hash {here[1]:032x}"
        for table, here, there in zip(plan.tables, expected, actual, strict=True)
        if here != there
    ]


def differing_schemas(
    source: Sequence[Entry], target: Sequence[Entry], lacking: frozenset[str], *, same_version: bool
) -> list[str]:
    """Return a sentence for each object that differs between the databases.

    Args:
        source: Entries of the source's archive.
        target: Entries of the target's archive.
        lacking: Roles that the target does not have, or that own nothing there; their objects were reported already.
        same_version: True if both servers have the same major version. Servers of different versions may write the same
            expression with or without parentheses, blanks and qualified names; such differences are then ignored.
    """
    form = str if same_version else normalised_text
    here, there = _by_name(source, lacking, form), _by_name(target, lacking, form)
    found = [f"{name} is missing" for name in here if name not in there]
    found += [f"{name} is not in the source" for name in there if name not in here]
    for name, one in here.items():
        other = there.get(name)
        if other is not None and not _are_same(one, other):
            found.append(f"{name}: {_difference(one, other)}")
    return found


def normalised_text(text: str) -> str:
    """Return a statement normalised line by line, so that spellings of different server versions become equal."""
    lines = (_BLANK.sub("", _BEFORE_DOT.sub("", line)).lower() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _by_name(
    entries: Sequence[Entry], lacking: frozenset[str], form: Callable[[str], str]
) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    stages = by_stage(entries)
    for one in (one for stage, each in stages.items() if stage != LEFT_OUT for one in each):
        text = one.sql.strip()
        if one.kind == "ACL":
            # Grants are compared as a set, because their order is that of granting; those of missing roles were
            # reported.
            kept = [words for words in statements_of(text) if not _names(words, lacking)]
            if not kept:
                continue
            text = "\n".join(sorted(kept))
        if _names(text, lacking) and one.kind in ("POLICY", "USER MAPPING", "DEFAULT ACL"):
            continue
        owner = one.owner if one.owned_name and one.owner not in lacking else ""
        found.setdefault(one.name, []).append((form(text), owner))
    return {name: sorted(each) for name, each in found.items()}


def _are_same(first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]) -> bool:
    """Return True if both sides have the same statements and owners; an empty owner in `first` matches any."""
    return len(first) == len(second) and all(
        text == there and owner in ("", has) for (text, owner), (there, has) in zip(first, second, strict=True)
    )


def _names(text: str, roles: frozenset[str]) -> bool:
    """Return True if a statement names any of the roles."""
    words = set(text.replace(";", " ").replace(",", " ").split())
    return any(one in words or sql.Identifier(one).as_string(None) in text for one in roles)


def _difference(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> str:
    if [text for text, _ in one] == [text for text, _ in other]:
        return f"belongs to {other[0][1] or 'another role'}, but in the source to {one[0][1] or 'another role'}"
    first, second = ("\n".join(text for text, _ in side).splitlines() for side in (one, other))
    for here, there in zip([*first, ""], [*second, ""], strict=False):
        if here != there:
            return f"`{there.strip() or 'nothing'}`, in the source `{here.strip() or 'nothing'}`"
    return "has more lines on one side"
