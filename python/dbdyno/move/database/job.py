"""A whole database as one job: the order of its steps, and how it goes on after a kill.

    before the target is touched     refusals, the snapshot, the archive of the schema, the plan in the ledger
    schema, one transaction          what comes before the rows, and the mark of the job
    rows, large objects              chunk by chunk, each with a note at the target
    indexes                          statement by statement, each with a note at the target
    finishing                        sequences, privileges, materialized views, optimizer statistics
    checking, then one transaction   rows read again; the mark goes, event triggers come
    checking                         both schemas compared

Only rows and large objects need the source's snapshot: all else is in the archive, which the job keeps. A job whose
snapshot was lost before all rows were there takes back what it made, and begins again in the same folder.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database import compare, finishing, indexes, large_objects, rows, schema
from dbdyno.move.database.archive import Entry, digest, read
from dbdyno.move.database.inventory import Facts, Inventory, extensions_of, facts_of, take_all
from dbdyno.move.database.inventory import Sequence as Counter
from dbdyno.move.database.programs import Programs, find_programs
from dbdyno.move.database.result import Moved, MovedTable, counts_of, notes_of
from dbdyno.move.database.target import (
    LARGE_OBJECTS_DONE,
    MARK,
    end_sessions,
    entries_in,
    job_in,
    place_of,
    refuse_filled,
    refuse_target,
    roles_of,
    session,
)
from dbdyno.move.engines.postgres.snapshot_holder import held
from dbdyno.move.engines.postgres.source import Snapshot, SnapshotGone, application
from dbdyno.move.ledger.folder import INNER, Ledger
from dbdyno.move.ledger.next_steps import named
from dbdyno.move.loading.publish_order import EACH
from dbdyno.move.loading.staged_rows import is_published
from dbdyno.move.nouns import counted
from dbdyno.move.proof.cost import sentence
from dbdyno.move.reading.progress import Show
from dbdyno.move.reading.resume import refuse_ended
from dbdyno.move.reading.run import ENDING_SQL, How, Plan, Say, plan_of, read_chunks

ARCHIVE, STATISTICS, AFTERWARDS = "schema.dump", "statistics.dump", "target.dump"
Meter = Callable[[], Show | None]
"""Returns the progress display for one phase."""


@dataclass
class Job:
    """A job with its servers, while it is carried out."""

    target: Postgres
    ledger: Ledger
    programs: Programs
    how: How
    say: Say
    meter: Meter
    level: str
    spent: dict[str, float]

    @property
    def plan(self) -> Plan:
        """Return the job's plan as it is in the ledger."""
        return Plan.from_json(self.ledger.plan)

    @property
    def database(self) -> dict[str, Any]:
        """Return what the plan says of the database besides its rows."""
        found: dict[str, Any] = self.ledger.plan["database"]
        return found

    def archive(self, name: str = ARCHIVE) -> list[Entry]:
        """Return the entries of an archive of the job.

        Raises:
            MoveError: It is not the one that the job wrote.
        """
        place = self.ledger.folder / INNER / name
        if not place.is_file() or digest(place) != self.database["archives"].get(name):
            raise MoveError(
                "is not the archive that the job wrote, and is not carried out",
                where=str(place),
                next_step="drop the target database, make it anew, and begin a new job",
            )
        return read(place)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Note a phase in the ledger, and how long it took."""
        began = time.monotonic()
        with self.ledger.phase(name):
            yield
        self.spent[name] = self.spent.get(name, 0.0) + time.monotonic() - began

    def size_of_all(self) -> dict[str, int]:
        """Return the sizes of the source's tables and indexes by name [bytes]."""
        sizes = {f"{one['schema']}.{one['name']}": int(one["bytes"]) for one in self.database["indexes"]}
        return {**{f"{t.schema}.{t.name}": t.relations[0].bytes for t in self.plan.tables}, **sizes}


def move_database(
    source: Postgres,
    target: Postgres,
    folder: Callable[[], Any],
    job: str,
    how: How,
    say: Say,
    meter: Meter,
    *,
    hold: int,
    level: str,
) -> Moved:
    """Move a database into an empty one.

    Args:
        source: The server and its database.
        target: The server and its empty database.
        folder: Returns the job's folder; called when nothing speaks against the move.
        job: The job's id.
        how: Number of workers, memory and other limits.
        say: Called with each line for the user.
        meter: Returns the progress display for one phase.
        hold: Seconds for which a separate process keeps the snapshot after a crash; 0 for not at all.
        level: What to check: `counts`, or `target` to read the target's rows again.

    Raises:
        MoveError: The move was refused or failed.
    """
    with session(target, job) as conn:
        programs = refuse(source, target, conn, job)
        say(f"job {job}; to end it from the database's side: {ENDING_SQL.format(application(job))}")
        snapshot, inventory = take_all(source, job)
        with snapshot:
            ledger = Ledger.create(folder(), {"status": "running", "snapshots": []})
            work = Job(target, ledger, programs, how, say, meter, level, {})
            with ledger.held():
                try:
                    _plan(work, source, snapshot, inventory, conn, job, "begun")
                except BaseException:
                    ledger.discard()
                    raise
                with named(ledger):
                    with held(source, snapshot, ledger, hold):
                        _fill(work, source, snapshot, conn)
                    snapshot.conn.close()
                    return _finish(work, conn)


def resume_database(
    source: Callable[[], Postgres],
    target: Postgres,
    ledger: Ledger,
    how: How,
    say: Say,
    meter: Meter,
    *,
    level: str,
    restart: bool = False,
) -> Moved:
    """Go on with a job, wherever it was ended.

    Args:
        source: Opens the source; called only if the target does not have all rows.
        target: The server and the job's database.
        ledger: The job's ledger.
        how: Number of workers, memory and other limits.
        say: Called with each line for the user.
        meter: Returns the progress display for one phase.
        level: What to check: `counts`, or `target` to read the target's rows again.
        restart: Take back what is there and begin again, although it could go on.

    Raises:
        MoveError: The job cannot go on, or it failed again.
    """
    ledger.refuse_foreign()
    refuse_ended(ledger)
    job, database = str(ledger.plan["id"]), ledger.plan["database"]
    with session(target, job) as conn, ledger.held(), named(ledger):
        refuse_target(target, conn, job)
        end_sessions(conn, job)
        facts = Facts(**database["facts"])
        programs = find_programs(max(facts.major, conn.info.server_version // 10000))
        work = Job(target, ledger, programs, how, say, meter, level, {})
        is_same = place_of(target, conn).lasting == ledger.plan["into"]["server"]
        if is_same and is_published(conn, ledger):
            say("the database was complete before the job was ended: both schemas are compared")
            return _conclude(work, conn)
        marked = job_in(conn)
        if marked is None or marked[0] != job:
            # Of the job there is nothing here: it begins, also where the database was made anew.
            refuse_filled(target, conn)
        if marked is not None and not restart and _is_filled(conn, ledger):
            ledger.attempt("resumed", how.workers, how.memory_bytes)
            return _finish(work, conn)
        opened = source()
        _refuse_other(opened, ledger)
        kept = _still_held(opened, ledger) if marked is not None and not restart else None
        if kept is not None:
            say(f"the snapshot of {ledger.manifest['snapshots'][-1]['at']} is still held: the job goes on as of then")
            ledger.attempt("resumed", how.workers, how.memory_bytes)
            with kept:
                _fill(work, opened, kept, conn)
            return _finish(work, conn)
        if marked is not None:
            say("the snapshot is gone with the process that held it: all is read again, as of one new instant")
            entries = work.archive()
            schema.take_back(conn, entries, database["kept"], had_public=facts.has_public)
        refuse_filled(target, conn)
        snapshot, inventory = take_all(opened, job)
        with snapshot:
            ledger.forget()
            _plan(work, opened, snapshot, inventory, conn, job, "restarted")
            _fill(work, opened, snapshot, conn)
        return _finish(work, conn)


def refuse(source: Postgres, target: Postgres, conn: psycopg.Connection[Any], job: str) -> Programs:
    """Check that a move can begin, without writing anything, and return the programs to use.

    Raises:
        MoveError: The target is in use, a standby's, not empty, or the source itself; or there is no pg_dump.
    """
    if source.pooled:
        raise MoveError(
            "a pooler hands each transaction to another server process, and a snapshot belongs to one",
            where=source.safe_dsn,
            next_step="connect to the server itself",
        )
    with contextlib.closing(source.connect()) as there:
        if place_of(source, there) == place_of(target, conn):
            raise MoveError("is the source itself", where=target.safe_dsn, next_step="name another database")
        version, unfinished = there.info.server_version, job_in(there)
        is_marked = there.execute("select to_regnamespace(%s) is not null", [MARK]).fetchone() == (True,)
    if is_marked and unfinished is None:
        raise MoveError(
            f"has a schema {MARK}, a name that a move needs for itself",
            where=source.safe_dsn,
            next_step=f"rename it: alter schema {MARK} rename to ...",
        )
    if unfinished is not None:
        raise MoveError(
            f"is the target of the unfinished job {unfinished[0]}",
            where=source.safe_dsn,
            next_step=f"finish it first: dbdyno move resume {unfinished[1]} --source DSN --target DSN",
        )
    refuse_target(target, conn, job)
    refuse_filled(target, conn)
    return find_programs(max(version, conn.info.server_version) // 10000)


def _refuse_other(source: Postgres, ledger: Ledger) -> None:
    with contextlib.closing(source.connect()) as conn:
        if place_of(source, conn).lasting == ledger.plan["server"]:
            return
    raise MoveError(
        "is another database than the job's", where=source.safe_dsn, next_step=f"name {ledger.plan['source']}"
    )


def _is_filled(conn: psycopg.Connection[Any], ledger: Ledger) -> bool:
    """Return True if the target has all rows and large objects."""
    return rows.reconcile(conn, ledger) == 0 and LARGE_OBJECTS_DONE in entries_in(conn)


def _still_held(source: Postgres, ledger: Ledger) -> Snapshot | None:
    """Return the job's snapshot if a process still holds it, else None."""
    name = ledger.manifest["snapshots"][-1].get("held")
    try:
        return take_all(source, str(ledger.plan["id"]), str(name))[0] if name else None
    except SnapshotGone:
        return None


def _plan(
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
    entries = schema.take_schema(source, work.programs, place / ARCHIVE, job, snapshot.id)
    archives = {ARCHIVE: digest(place / ARCHIVE)}
    here = facts_of(conn)
    if finishing.can_carry(work.programs, here.major):
        finishing.take_statistics(source, work.programs, place / STATISTICS, job, snapshot.id)
        archives[STATISTICS] = digest(place / STATISTICS)
    owners = {one.owner for one in entries if one.owner}
    about = {
        **inventory.sizes(),
        "archives": archives,
        "roles": sorted(owners | set(inventory.roles)),
        "kept": sorted(extensions_of(conn)),
        "notes": _notes(inventory, here, entries),
    }
    into = {
        "table": EACH,
        "mode": "insert",
        "rejects": None,
        "target": work.target.safe_dsn,
        "server": place_of(work.target, conn).lasting,
    }
    size = work.how.piece_bytes or rows.piece_bytes(
        [one.bytes for t in inventory.tables for one in t.relations], work.how
    )
    plan = plan_of(source, snapshot, job, replace(work.how, piece_bytes=size))
    plan = replace(
        plan,
        server=place_of(source, snapshot.conn).lasting,
        tables=tuple(rows.handed_on(one) for one in plan.tables),
        chunks=tuple(replace(one, file="") for one in plan.chunks),
        into=into,
        database=about,
    )
    ledger.manifest.update(plan=plan.to_json(), snapshots=[{"id": snapshot.id, "at": snapshot.taken_at}])
    ledger.manifest.pop("publishing", None)
    ledger.attempt(how, work.how.workers, work.how.memory_bytes)
    ledger.save()


def _notes(inventory: Inventory, here: Facts, entries: Sequence[Entry]) -> list[str]:
    """Return what differs between the databases themselves, and what stays with the source's."""
    facts = inventory.facts
    found = [f"{one}, which belongs to the database itself" for one in inventory.own]
    found += [
        f"subscription {one.tag} is disabled, as pg_dump writes it" for one in entries if one.kind == "SUBSCRIPTION"
    ]
    if facts.encoding != here.encoding:
        found.append(f"the target's encoding is {here.encoding}, the source's {facts.encoding}")
    if (facts.collate, facts.ctype) != (here.collate, here.ctype):
        found.append(
            f"the target sorts by {here.collate} (ctype {here.ctype}), the source by {facts.collate} ({facts.ctype}):"
            " the order of text differs"
        )
    if here.major < facts.major:
        found.append(f"the target is older ({here.major}) than the source ({facts.major}): see what it does not know")
    return found


def _fill(work: Job, source: Postgres, snapshot: Snapshot, conn: psycopg.Connection[Any]) -> None:
    """Restore what comes before the rows, then copy rows and large objects."""
    facts = Facts(**work.database["facts"])
    plan = work.plan
    if job_in(conn) is None:
        with work.phase("schema"):
            entries = schema.by_stage(work.archive())[schema.BEFORE]
            work.say(f"schema: {counted(len(entries), 'statement')} before the rows")
            schema.restore_before(conn, entries, plan.id, work.ledger.folder, drops_public=not facts.has_public)
    missing = rows.reconcile(conn, work.ledger)
    size = sum(one.relations[0].bytes for one in plan.tables)
    began = time.monotonic()
    if missing:
        work.say(f"rows: {counted(len(plan.tables), 'table')}, {size / 1e6:,.1f} MB, {counted(missing, 'chunk')}")
        how = replace(work.how, progress=work.meter())
        read_chunks(source, work.ledger, snapshot, how, work.say, rows.maker(work.target, conn))
    work.spent["rows"] = time.monotonic() - began
    if LARGE_OBJECTS_DONE not in entries_in(conn):
        with work.phase("large objects"):
            count = large_objects.copy_all(source, snapshot, work.target, plan.id, work.how.workers)
        if count:
            work.say(f"{counted(count, 'large object')}")


def _finish(work: Job, conn: psycopg.Connection[Any]) -> Moved:
    """Restore what comes after the rows, check, and end the job at the target."""
    entries, job = work.archive(), work.plan.id
    stages = schema.by_stage(entries)
    done = entries_in(conn)
    with work.phase("indexes"):
        _restore(work, conn, indexes.steps_of(stages[schema.AFTER], entries, work.size_of_all()), done)
    with work.phase("finishing"):
        finishing.set_sequences(conn, [Counter(**one) for one in work.database["sequences"]])
        finishing.grant_all(conn, stages[schema.PRIVILEGES])
        _restore(work, conn, indexes.steps_of(stages[schema.REFRESH], entries, {}), done)
    with work.phase("statistics"):
        statistics = _statistics(work, conn, job)
    with work.phase("checking"):
        differs = _check_rows(work, conn)
        count = large_objects.listed(conn)
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
    finishing.publish(conn, work.ledger, stages[schema.LAST])
    return _conclude(work, conn)


def _restore(work: Job, conn: psycopg.Connection[Any], steps: Sequence[indexes.Step], done: set[int]) -> None:
    whole = sum(one.bytes for one in steps)
    left = [one for one in steps if one.entry.id not in done]
    if not left:
        return
    memory = indexes.memory_bytes(work.target, conn, work.how.workers)
    built = [one for one in left if one.bytes]
    if built:
        work.say(
            f"indexes and constraints: {len(built):,} to build, {counted(len(left) - len(built), 'other statement')};"
            f" maintenance_work_mem {memory >> 20:,} MB for each of {work.how.workers}"
        )
    show = work.meter() if whole else None

    def progress(size: int) -> None:
        # The line ends at the whole, which small statements may follow.
        if show is not None and size < whole:
            show(size / whole, size, whole)

    indexes.restore_all(work.target, work.plan.id, steps, done, work.how.workers, memory, progress)
    if show is not None:
        show(1.0, whole, whole)


def _statistics(work: Job, conn: psycopg.Connection[Any], job: str) -> str:
    if STATISTICS not in work.database["archives"]:
        finishing.analyse(work.target, job, work.how.workers, progress=lambda stage: None)
        return f"analysed in {len(finishing.STAGES)} stages"
    carried = finishing.carry_statistics(conn, work.archive(STATISTICS))
    bare = finishing.bare_tables(conn)
    finishing.analyse(work.target, job, work.how.workers, bare)
    more = f"; {counted(len(bare), 'table')} analysed, for which there were none to carry" if bare else ""
    return f"carried from the source ({carried} entries){more}"


def _check_rows(work: Job, conn: psycopg.Connection[Any]) -> list[str]:
    plan = work.plan
    wanted = compare.sums_of(work.ledger, plan)
    if work.level != "target":
        return []
    work.say("reading the target's rows again")
    found = compare.read_again(work.target, conn, plan, work.how, work.meter())
    return [*compare.differing_rows(plan, wanted, found), *large_objects.differing(conn)[1]]


def _extension_notes(work: Job, conn: psycopg.Connection[Any]) -> list[str]:
    here, there = extensions_of(conn), work.database["extensions"]
    return [
        f"extension {name} has version {here[name]} at the target, {version} in the source"
        for name, version in there.items()
        if here.get(name, version) != version
    ]


def _conclude(work: Job, conn: psycopg.Connection[Any]) -> Moved:
    """Compare both schemas, and close the job."""
    ledger, plan = work.ledger, work.plan
    entries = work.archive()
    with work.phase("checking"):
        place = ledger.folder / INNER / AFTERWARDS
        after = schema.take_schema(work.target, work.programs, place, plan.id)
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
    moved = Moved(
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
        phases={name: round(spent, 3) for name, spent in work.spent.items()},
        cost=sentence(ledger.manifest.get("cost", [])),
    )
    ledger.manifest.update(status="complete", proved=moved.sentences())
    ledger.save()
    return moved
