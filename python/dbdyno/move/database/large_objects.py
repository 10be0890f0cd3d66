"""Large objects with content, owner, privileges and comment, copied by several sessions in the snapshot.

A batch commits as a whole, with a hash of each object's content, so an object that exists at the target is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.schema import Restorer
from dbdyno.move.database.target import LARGE_OBJECTS_DONE, MARK, note_entry, session
from dbdyno.move.engines.postgres.source import Snapshot, application_name, session_sql

BATCH = 100
PIECE_BYTES = 4 << 20
LIST_SQL = """
select m.oid::bigint, pg_get_userbyid(lomowner)::text, obj_description(m.oid, 'pg_largeobject'),
       coalesce((select array_agg(array[coalesce(r.rolname::text, 'public'), x.privilege_type, x.is_grantable::text]
                                  order by r.rolname, x.privilege_type)
                 from aclexplode(lomacl) x left join pg_catalog.pg_roles r on r.oid = x.grantee
                 where x.grantee <> lomowner), '{}')
from pg_catalog.pg_largeobject_metadata m order by m.oid
"""
MADE_SQL = f"create table if not exists {MARK}.large_object (oid oid primary key, bytes bigint, hash text)"


@dataclass(frozen=True)
class LargeObject:
    """Description of a large object, without its content."""

    oid: int
    owner: str
    comment: str | None
    grants: tuple[tuple[str, str, bool], ...] = field(default=())
    """Role (or `public`), privilege, and True if it has the grant option."""


def list_objects(conn: psycopg.Connection[Any]) -> list[LargeObject]:
    """Return the large objects of the session's database."""
    rows = conn.execute(LIST_SQL).fetchall()
    return [
        LargeObject(oid, owner, comment, tuple((role, what, gives == "true") for role, what, gives in grants))
        for oid, owner, comment, grants in rows
    ]


def copy_all(source: Postgres, snapshot: Snapshot, target: Postgres, job: str, workers: int) -> int:
    """Copy all large objects that the target lacks, and return their total number.

    Raises:
        MoveError: An object cannot be read or written.
    """
    wanted = list_objects(snapshot.conn)
    with session(target, job) as conn:
        conn.execute(MADE_SQL.encode())
        known = {row[0] for row in conn.execute("select oid::bigint from dbdyno_move.large_object")}
        left = [one for one in wanted if one.oid not in known]
        batches = [left[place : place + BATCH] for place in range(0, len(left), BATCH)]
        parts = [batches[number::workers] for number in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(_copy, source, snapshot, target, job, part) for part in parts if part]:
                done.result()
        note_entry(conn, LARGE_OBJECTS_DONE)
    return len(wanted)


def _copy(
    source: Postgres, snapshot: Snapshot, target: Postgres, job: str, batches: Sequence[Sequence[LargeObject]]
) -> None:
    name = application_name(job)
    with contextlib.closing(source.connect(application_name=name, statement_timeout_ms=0)) as here:
        for words in session_sql(here, snapshot.id):
            here.execute(words.encode())
        with session(target, job) as there:
            restorer = Restorer.for_session(there)
            for batch in batches:
                with there.transaction():
                    for one in batch:
                        _copy_one(here, restorer, one)
                    restorer.write_notes()


def _copy_one(here: psycopg.Connection[Any], restorer: Restorer, large_object: LargeObject) -> None:
    there, hashed, size = restorer.conn, hashlib.sha256(), 0
    try:
        there.execute("select lo_create(%s)", [large_object.oid])
        for piece in read_pieces(here, large_object.oid):
            there.execute("select lo_put(%s, %s, %s)", [large_object.oid, size, piece], binary=True)
            hashed.update(piece)
            size += len(piece)
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0]
        raise MoveError(
            said,
            where=f"large object {large_object.oid}",
            next_step="grant SELECT on the large object, then run `dbdyno move resume`",
        ) from None
    place = sql.SQL("large object {}").format(sql.Literal(large_object.oid))
    if large_object.comment is not None:
        there.execute(sql.SQL("comment on {} is {}").format(place, large_object.comment))
    for role, what, gives in large_object.grants:
        if role != "public" and role not in restorer.roles:
            restorer.notes.append(("role", role, f"privilege on large object {large_object.oid}"))
            continue
        to = sql.SQL("public") if role == "public" else sql.Identifier(role)
        on = sql.SQL(" with grant option" if gives else "")
        there.execute(sql.SQL("grant {} on {} to {}{}").format(sql.SQL(what), place, to, on))
    if large_object.owner != restorer.user:
        if large_object.owner in restorer.roles:
            there.execute(sql.SQL("alter {} owner to {}").format(place, sql.Identifier(large_object.owner)))
        else:
            restorer.notes.append(("role", large_object.owner, f"large object {large_object.oid}"))
    there.execute(
        "insert into dbdyno_move.large_object values (%s, %s, %s)", [large_object.oid, size, hashed.hexdigest()]
    )


def read_pieces(conn: psycopg.Connection[Any], oid: int) -> Iterator[bytes]:
    """Yield the content of a large object piece by piece, in order."""
    place = 0
    while True:
        row = conn.execute("select lo_get(%s, %s, %s)", [oid, place, PIECE_BYTES], binary=True).fetchone()
        piece = bytes(row[0]) if row else b""
        if piece:
            yield piece
        if len(piece) < PIECE_BYTES:
            return
        place += len(piece)


def compare_objects(conn: psycopg.Connection[Any]) -> tuple[int, list[str]]:
    """Read the target's large objects again; return their number, and a sentence for each that differs."""
    if conn.execute("select to_regclass(%s) is null", [f"{MARK}.large_object"]).fetchone() == (True,):
        return 0, []
    known = {row[0]: row[1] for row in conn.execute("select oid::bigint, hash from dbdyno_move.large_object")}
    here = {row[0] for row in conn.execute("select oid::bigint from pg_catalog.pg_largeobject_metadata")}
    differs = [f"large object {oid} is missing" for oid in sorted(known.keys() - here)]
    differs += [f"large object {oid} was not in the source" for oid in sorted(here - known.keys())]
    for oid in sorted(known.keys() & here):
        hashed = hashlib.sha256()
        for piece in read_pieces(conn, oid):
            hashed.update(piece)
        if hashed.hexdigest() != known[oid]:
            differs.append(f"large object {oid} has different content")
    return len(known), differs
