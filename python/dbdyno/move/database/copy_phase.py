"""First half of a job: the plan with the archive of the schema, then all work that needs the snapshot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database import finish_steps, large_objects, rows, schema
from dbdyno.move.database.archive import Entry, digest
from dbdyno.move.database.inventory import Facts, Inventory, extensions_of, facts_of
from dbdyno.move.database.mask_key import digest_of
from dbdyno.move.database.target import LARGE_OBJECTS_DONE, place_of, recorded_entries, unfinished_job
from dbdyno.move.database.work import ARCHIVE, STATISTICS, Job
from dbdyno.move.engines.postgres.source import Snapshot
from dbdyno.move.ledger.folder import INNER
from dbdyno.move.loading.publish_order import EACH
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.run import plan_of, read_chunks


def write_plan(
    work: Job,
    source: Postgres,
    snapshot: Snapshot,
    inventory: Inventory,
    conn: psycopg.Connection[Any],
    job: str,
    how: str,
) -> None:
    """Dump the schema in the snapshot, and write the plan; the target is not touched."""
    ledger, place = work.ledger, work.ledger.folder / INNER
    entries = schema.dump_schema(source, work.programs, place / ARCHIVE, job, snapshot.id)
    archives = {ARCHIVE: digest(place / ARCHIVE)}
    here = facts_of(conn)
    # Statistics contain values of the source, so the target makes its own from the masked values.
    if finish_steps.can_transfer_statistics(work.programs, here.major) and not inventory.masks:
        finish_steps.dump_statistics(source, work.programs, place / STATISTICS, job, snapshot.id)
        archives[STATISTICS] = digest(place / STATISTICS)
    # A job that is resumed after its snapshot is lost keeps its masks, and so its key.
    known = ((ledger.manifest.get("plan") or {}).get("database") or {}).get("mask_key", "")
    owners = {one.owner for one in entries if one.owner}
    about = {
        **inventory.sizes(),
        "archives": archives,
        "encoding": rows.encoding_of(inventory.facts.encoding, here.encoding),
        "mask_key": digest_of(work.how.mask_key) or known,
        "roles": sorted(owners | set(inventory.roles)),
        "kept": sorted(extensions_of(conn)),
        "notes": [*_notes(inventory, here, entries), *inventory.mask_notes],
    }
    into = {
        "table": EACH,
        "mode": "insert",
        "rejects": None,
        "target": work.target.safe_dsn,
        "server": place_of(work.target, conn).stable_id,
    }
    size = work.how.piece_bytes or rows.piece_bytes(
        [one.bytes for t in inventory.tables for one in t.relations], work.how
    )
    plan = plan_of(source, snapshot, job, replace(work.how, piece_bytes=size))
    plan = replace(
        plan,
        server=place_of(source, snapshot.conn).stable_id,
        tables=tuple(rows.table_for_transfer(one) for one in plan.tables),
        chunks=tuple(replace(one, file="") for one in plan.chunks),
        into=into,
        database=about,
    )
    ledger.manifest.update(plan=plan.to_json(), snapshots=[{"id": snapshot.id, "at": snapshot.taken_at}])
    ledger.manifest.pop("publishing", None)
    ledger.begin_attempt(how, work.how.workers, work.how.memory_bytes)


def _notes(inventory: Inventory, here: Facts, entries: Sequence[Entry]) -> list[str]:
    """Return notes on how the databases themselves differ, and on what is not moved or arrives changed."""
    facts = inventory.facts
    found = [f"{one}, which belongs to the database itself" for one in inventory.own]
    found += [
        f"subscription {one.tag} is disabled, as always after pg_dump" for one in entries if one.kind == "SUBSCRIPTION"
    ]
    if facts.encoding != here.encoding:
        found.append(f"the target's encoding is {here.encoding}, the source's {facts.encoding}")
    if (facts.collate, facts.ctype) != (here.collate, here.ctype):
        found.append(
            f"the target sorts by {here.collate} (ctype {here.ctype}), the source by {facts.collate} ({facts.ctype}):"
            " the order of text differs"
        )
    if here.major < facts.major:
        found.append(
            f"the target is older ({here.major}) than the source ({facts.major}): check which features it lacks"
        )
    return found


def fill_target(work: Job, source: Postgres, snapshot: Snapshot, conn: psycopg.Connection[Any]) -> None:
    """Restore everything that comes before the rows, then copy rows and large objects."""
    facts = Facts(**work.database["facts"])
    plan = work.plan
    if unfinished_job(conn) is None:
        with work.phase("schema"):
            entries = schema.by_stage(work.archive())[schema.BEFORE]
            work.how.say(f"schema: {with_noun(len(entries), 'statement')} before the rows")
            schema.restore_before(conn, entries, plan.id, work.ledger.folder, drops_public=not facts.has_public)
    work.ledger.is_durable = False
    missing = rows.reconcile(conn, work.ledger)
    size = sum(one.relations[0].bytes for one in plan.tables)
    began = time.monotonic()
    if missing:
        tables, chunks = with_noun(len(plan.tables), "table"), with_noun(missing, "chunk")
        work.how.say(f"rows: {tables}, {size / 1e6:,.1f} MB, {chunks}")
        how = replace(work.how, progress=work.meter())
        read_chunks(source, work.ledger, snapshot, how, rows.job_builder(work.target, conn, work.database["encoding"]))
    work.spent["rows"] = time.monotonic() - began
    if LARGE_OBJECTS_DONE not in recorded_entries(conn):
        with work.phase("large objects"):
            count = large_objects.copy_all(source, snapshot, work.target, plan.id, work.how.workers)
        if count:
            work.how.say(f"{with_noun(count, 'large object')}")
