"""Periods of snapshots, given by numbers, notes or times, and baselines.

A baseline is a period with a name, stored as a file in the store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.base.files import make_inner_folder
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.manifest import DAMAGED, Section
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.sums.index import between
from dbdyno.snapshot.store.folder import Snapshot, Store


@dataclass(frozen=True)
class Period:
    """Consecutive snapshots of one target."""

    name: str
    chain: list[Snapshot]


def period(store: Store, text: str, target: str | None = None) -> Period:
    """Return a period from `1..12`, `note..note`, times, or a baseline's name.

    Raises:
        SnapshotError: The text does not name a period.
    """
    name = text.removeprefix("snap:")
    first, dots, last = name.partition("..")
    if not dots:
        kept = store.folder / "baselines" / f"{name}.json"
        if not kept.is_file():
            known = ", ".join(sorted(one["name"] for one in baselines(store))) or "none"
            raise SnapshotError(
                f"{name!r} is not a period",
                where=str(store.folder),
                next_step=f"write FIRST..LAST, such as snap:1..12, or a baseline ({known})",
            )
        found = _baseline(kept)
        first, last = str(found["first"]), str(found["last"])
    start = find(store, first, target)
    end = find(store, last, target or start.target)
    if start.target != end.target or start.number >= end.number:
        raise SnapshotError(
            f"{name!r} is not a period: expected two snapshots of one target, the earlier first",
            next_step="list the snapshots with `dbdyno snap list`",
        )
    return Period(name, between(store, start, end))


def save_baseline(store: Store, name: str, part: Period) -> dict[str, object]:
    """Give a period a name in the store, replacing a baseline with that name, and return the baseline as written.

    Raises:
        SnapshotError: The name is not valid.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]{0,60}", name):
        raise SnapshotError(
            f"{name!r} is not a valid name of a baseline",
            next_step="use letters, digits, - and _, with a letter first",
        )
    folder = store.folder / "baselines"
    make_inner_folder(folder, exist_ok=True)
    kept = {
        "name": name,
        "target": part.chain[0].target,
        "first": part.chain[0].number,
        "last": part.chain[-1].number,
        "from": part.chain[0].at_utc.isoformat(),
        "to": part.chain[-1].at_utc.isoformat(),
        "snapshots": len(part.chain),
    }
    write_json(folder / f"{name}.json", kept)
    return kept


def baselines(store: Store) -> list[TableRow]:
    """Return all baselines of a store, sorted by name.

    Raises:
        EvidenceError: A baseline's file is damaged.
    """
    return [_baseline(path) for path in sorted((store.folder / "baselines").glob("*.json"))]


def _baseline(path: Path) -> JsonObject:
    found = read_json(path, Section)
    if not isinstance(found, dict) or found.get("name") != path.stem:
        raise EvidenceError("is not the file of a baseline with this name", where=str(path), next_step=DAMAGED)
    return found


def delete_baseline(store: Store, name: str) -> None:
    """Delete a baseline; its snapshots are not deleted.

    Raises:
        SnapshotError: There is no such baseline.
    """
    path = store.folder / "baselines" / f"{name}.json"
    if name not in {one["name"] for one in baselines(store)}:
        raise SnapshotError(
            f"there is no baseline {name!r}",
            where=str(store.folder),
            next_step="list the baselines with `dbdyno snap baseline`",
        )
    path.unlink()
