"""Check of a store: every manifest, every file that a manifest names, the checksums of both, the baselines.

A repair loses nothing that can be read: a damaged file is renamed to `*.torn`, what a killed process left incomplete is
deleted, and the manifests of the affected snapshots then say what is missing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import Error, EvidenceError
from dbdyno.base.sql_text import literal
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.plans.plan_store import faults as plan_faults
from dbdyno.snapshot.reading.periods import baselines
from dbdyno.snapshot.store import locks, manifest
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.integrity import damage, pack_checksum
from dbdyno.snapshot.store.locks import PACKS
from dbdyno.snapshot.store.pack import delete_unused
from dbdyno.snapshot.store.records import ViewRecord

PENDING_S = 600
"""Age in seconds below which a number without a manifest may be a snapshot that is being taken."""


@dataclass(frozen=True)
class Fault:
    """A defect of a store.

    Attributes:
        where: Its path in the store.
        what: What is wrong.
        costs: Numbers of the snapshots that lose data because of it.
        repair: What a repair does (`set aside`, `delete`), or None if it can do nothing.
    """

    where: str
    what: str
    costs: tuple[int, ...] = ()
    repair: str | None = None


def check(store: Store) -> list[Fault]:
    """Return all defects of a store, sorted by path; every file is read."""
    found: list[Fault] = []
    whole: list[Snapshot] = []
    for number in store.numbers():
        path = manifest.path_of(store.folder, number)
        if not path.exists():
            continue
        try:
            whole.append(store.open(number))
        except EvidenceError as error:
            place = _place(store, error.where) or _place(store, str(path)) or ""
            own = place == _place(store, str(path))
            found.append(Fault(place, error.message, (number,), "set aside" if own else None))
            continue
        wrong = manifest.checksum_problem(store.folder, number)
        if wrong is not None:
            found.append(Fault(_place(store, str(path)) or "", wrong, (number,)))
    found += _merged_twice(store, whole)
    found += _files(store, whole)
    found += _left_over(store, whole, {int(number) for fault in found for number in fault.costs})
    found += _baselines(store, {one.number for one in whole})
    found += [Fault(where, what) for where, what in plan_faults(store.folder)]
    return sorted(found, key=lambda fault: fault.where)


def repair(store: Store, faults: list[Fault]) -> list[Fault]:
    """Repair defects and return those that remain.

    Raises:
        SnapshotError: The store is in use.
    """
    stay = []
    with locks.maintenance_lock(store.folder), locks.exclusive_lock(store.folder):
        for fault in faults:
            path = store.folder / fault.where
            if fault.repair == "set aside" and path.name == manifest.NAME:
                path.rename(path.with_suffix(".json.torn"))
            elif fault.repair == "set aside":
                _set_aside(store, fault)
            elif fault.repair == "delete" and path.name == manifest.NAME:
                path.unlink(missing_ok=True)
            elif fault.repair == "delete" and path.is_dir() and not (path / manifest.NAME).exists():
                delete_unused(store, [path])
                if path.is_dir() and not any(path.glob("*.parquet")):
                    shutil.rmtree(path, ignore_errors=True)
            elif fault.repair == "delete":
                delete_unused(store, [path.parent])
            else:
                stay.append(fault)
    return stay


def _merged_twice(store: Store, snapshots: list[Snapshot]) -> Iterator[Fault]:
    """Yield snapshots left by a killed pruning whose samples were already merged into the next one."""
    here = {one.number for one in snapshots}
    for one in snapshots:
        for number in here & set(one.manifest.get("merged", ())):
            path = manifest.path_of(store.folder, number)
            yield Fault(_place(store, str(path)) or "", f"its samples are also in {one.number}", (number,), "delete")


def _files(store: Store, snapshots: list[Snapshot]) -> Iterator[Fault]:
    """Yield files that snapshots name and that are missing, damaged or changed."""
    named: dict[str, list[tuple[Snapshot, ViewRecord]]] = {}
    for one in snapshots:
        for record in one.views.values():
            if record.get("file"):
                named.setdefault(record["file"], []).append((one, record))
    for file, users in sorted(named.items()):
        what = _wrong(store, file, users[0][1])
        if what is not None:
            yield Fault(file, what, tuple(sorted({one.number for one, _ in users})), "set aside")


def _wrong(store: Store, file: str, record: ViewRecord) -> str | None:
    path = store.folder / file
    known = pack_checksum(path) if "in" in record else record.get("file_sum")
    what = damage(path, known)
    if what is not None or known is not None:
        return what and what.removeprefix(f"its file {path.parent.name}/{path.name} ")
    from dbdyno.evidence.duck import duckdb

    try:
        with file_connection() as connection:
            connection.execute(f"select sum(hash(columns(*))) from read_parquet({literal(str(path))})").fetchall()
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return None


def _left_over(store: Store, snapshots: list[Snapshot], damaged: set[int]) -> Iterator[Fault]:
    """Yield what killed processes left: numbers without a manifest, and files that no snapshot names."""
    used = {record.get("file") for one in snapshots for record in one.views.values()}
    folders = [store.folder / f"{number:06d}" for number in store.numbers() if number not in damaged]
    folders += sorted((store.folder / PACKS).glob("*-*-*"))
    for folder in folders:
        if not folder.is_dir() or time.time() - folder.stat().st_mtime < PENDING_S:
            continue
        place = _place(store, str(folder)) or ""
        loose = [path.name for path in folder.glob("*.parquet") if f"{place}/{path.name}" not in used]
        stands = (folder / manifest.NAME).exists() or any(folder.glob("*.torn"))
        kept = stands or any(f"{place}/{path.name}" in used for path in folder.glob("*.parquet"))
        if not kept:
            yield Fault(place, "a killed process left it: it has no snapshot", (), "delete")
        elif loose and not any(folder.glob("manifest.json.torn")):
            yield Fault(f"{place}/{loose[0]}", f"{len(loose)} files that belong to no snapshot", (), "delete")


def _baselines(store: Store, known: set[int]) -> Iterator[Fault]:
    try:
        for one in baselines(store):
            lost = tuple(number for number in (one["first"], one["last"]) if number not in known)
            if lost:
                yield Fault(f"baselines/{one['name']}.json", "begins or ends at a snapshot that does not exist", lost)
    except Error as error:
        yield Fault(_place(store, error.where) or "baselines", error.message)


def _lose(record: ViewRecord, problem: str) -> None:
    """Record in a view's record that its rows are lost, and why."""
    record.pop("file", None)
    record.pop("in", None)
    record.pop("file_sum", None)
    record.pop("digest", None)
    record["problem"], record["next_step"], record["rows"] = problem, None, 0


def _set_aside(store: Store, fault: Fault) -> None:
    """Rename a damaged file, and record its loss in every snapshot that named it."""
    for number in fault.costs:
        one = store.open(number)
        for record in one.views.values():
            if record.get("file") == fault.where:
                _lose(record, f"its file {fault.where} {fault.what}")
        manifest.write(store.folder, one.manifest)
    path = store.folder / fault.where
    if path.exists():
        path.rename(path.with_name(f"{path.name}.torn"))


def _place(store: Store, where: str | None) -> str | None:
    if where is None:
        return None
    path = Path(where)
    return str(path.relative_to(store.folder)) if path.is_relative_to(store.folder) else where
