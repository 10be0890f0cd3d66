"""Second half of a job, without the source: indexes and constraints, checks, the last transaction, the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from dbdyno.move.database import compare, finish_steps, indexes, large_objects, schema
from dbdyno.move.database.inventory import Facts, extensions_of
from dbdyno.move.database.inventory import Sequence as Counter
from dbdyno.move.database.result import MovedDatabase, MovedTable, counts_of, notes_of
from dbdyno.move.database.target import recorded_entries, roles_of
from dbdyno.move.database.work import STATISTICS, TARGET_ARCHIVE, Job
from dbdyno.move.ledger.folder import INNER
from dbdyno.move.nouns import with_noun
from dbdyno.move.proof.cost import sentence


def finish(work: Job, conn: psycopg.Connection[Any]) -> MovedDatabase:
    """Restore everything that comes after the rows, check the rows, and end the job at the target."""
    entries, job = work.archive(), work.plan.id
    stages = schema.by_stage(entries)
    done = recorded_entries(conn)
    with work.phase("indexes"):
        _restore(work, conn, indexes.steps_of(stages[schema.AFTER], entries, work.sizes()), done)
    with work.phase("finishing"):
        finish_steps.set_sequences(conn, [Counter(**one) for one in work.database["sequences"]])
        finish_steps.grant_all(conn, stages[schema.PRIVILEGES])
        _restore(work, conn, indexes.steps_of(stages[schema.REFRESH], entries, {}), done)
    with work.phase("statistics"):
        statistics = _statistics(work, conn, job)
    with work.phase("checking"):
        differs = _check_rows(work, conn)
        count = large_objects.list_objects(conn)
        noted = conn.execute("select distinct kind, name, line from dbdyno_move.note order by 1, 2, 3").fetchall()
        work.ledger.manifest["database"] = {
            "statistics": statistics,
            "differs": differs,
            "large_objects": len(count),
            "rows_checked": work.level == "target",
            "not_owners": sorted({name for kind, name, _ in noted if kind == "owner"}),
            "notes": [*work.database["notes"], *_extension_notes(work, conn), *notes_of(noted)],
        }
        work.ledger.save()
    finish_steps.publish(conn, work.ledger, stages[schema.LAST])
    return conclude(work, conn)


def _restore(work: Job, conn: psycopg.Connection[Any], steps: Sequence[indexes.Step], done: set[int]) -> None:
    whole = sum(one.bytes for one in steps)
    left = [one for one in steps if one.entry.id not in done]
    if not left:
        return
    memory = indexes.memory_bytes(work.target, conn, work.how.workers)
    built = [one for one in left if one.bytes]
    if built:
        work.how.say(
            f"indexes and constraints: {len(built):,} to build, {with_noun(len(left) - len(built), 'other statement')};"
            f" maintenance_work_mem {memory >> 20:,} MB for each of {work.how.workers}"
        )
    show = work.meter() if whole else None

    def progress(size: int) -> None:
        # The last line is shown after the loop, because small statements may follow the one that completes the total.
        if show is not None and size < whole:
            show(size / whole, size, whole)

    indexes.restore_all(work.target, work.plan.id, steps, done, work.how.workers, memory, progress)
    if show is not None:
        show(1.0, whole, whole)


def _statistics(work: Job, conn: psycopg.Connection[Any], job: str) -> str:
    if STATISTICS not in work.database["archives"]:
        finish_steps.analyse(work.target, job, work.how.workers, progress=lambda stage: None)
        return f"analysed in {len(finish_steps.STAGES)} stages"
    carried = finish_steps.restore_statistics(conn, work.archive(STATISTICS))
    bare = finish_steps.tables_without_statistics(conn)
    finish_steps.analyse(work.target, job, work.how.workers, bare)
    more = f"; {with_noun(len(bare), 'table')} analysed, because they had no statistics to copy" if bare else ""
    return f"carried from the source ({carried} entries){more}"


def _check_rows(work: Job, conn: psycopg.Connection[Any]) -> list[str]:
    plan = work.plan
    wanted = compare.sums_of(work.ledger, plan)
    if work.level != "target":
        return []
    work.how.say("reading the target's rows again")
    found = compare.read_again(work, conn, plan)
    return [*compare.differing_rows(plan, wanted, found), *large_objects.compare_objects(conn)[1]]


def _extension_notes(work: Job, conn: psycopg.Connection[Any]) -> list[str]:
    here, there = extensions_of(conn), work.database["extensions"]
    return [
        f"extension {name} has version {here[name]} at the target, {version} in the source"
        for name, version in there.items()
        if here.get(name, version) != version
    ]


def conclude(work: Job, conn: psycopg.Connection[Any]) -> MovedDatabase:
    """Compare both schemas, and close the job."""
    ledger, plan = work.ledger, work.plan
    entries = work.archive()
    with work.phase("comparing"):
        place = ledger.folder / INNER / TARGET_ARCHIVE
        after = schema.dump_schema(work.target, work.programs, place, plan.id)
        known = ledger.manifest["database"]
        lacking = frozenset(work.database["roles"]) - roles_of(conn) | frozenset(known["not_owners"])
        is_same = Facts(**work.database["facts"]).major == conn.info.server_version // 10000
        schemas = compare.differing_schemas(entries, after, lacking, same_version=is_same)
        differs = [*known["differs"], *schemas]
    sizes: dict[int, int] = {}
    table_of = {chunk.number: chunk.table for chunk in plan.chunks}
    for number, one in ledger.records().items():
        sizes[table_of[number]] = sizes.get(table_of[number], 0) + one["copy_bytes"]
    tables = tuple(
        MovedTable(f"{table.schema}.{table.name}", count, sizes.get(place, 0), f"{summed:032x}")
        for place, (table, (count, summed)) in enumerate(zip(plan.tables, compare.sums_of(ledger, plan), strict=True))
    )
    moved = MovedDatabase(
        job=plan.id,
        source=plan.source,
        target=work.target.safe_dsn,
        at=str(ledger.manifest["snapshots"][-1]["at"]),
        tables=tables,
        objects=counts_of(entries),
        index_bytes=sum(int(one["bytes"]) for one in work.database["indexes"]),
        sequences=len(work.database["sequences"]),
        large_objects=int(known["large_objects"]),
        statistics=str(known["statistics"]),
        rows_checked=bool(known["rows_checked"]),
        differs=tuple(differs),
        notes=tuple(known["notes"]),
        masks=tuple(work.database.get("masks", ())),
        phases={name: round(spent, 3) for name, spent in work.spent.items()},
        cost=sentence(ledger.manifest.get("cost", [])),
    )
    ledger.manifest.update(status="complete", proved=moved.sentences())
    ledger.save()
    return moved
