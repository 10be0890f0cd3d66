"""The manifest of a snapshot on disk: its facts, one record per view, and a pointer to the columns.

The columns of the views hardly ever change, so they are stored once, in `shapes/<digest>.json`, and every manifest with
the same columns names that file. The files of a pack are named after the views, so a manifest names only the pack: it
then fits in one block of a file system. In memory a manifest is complete: `read` puts columns and files back into its
records. Schema 1 had the columns in every manifest, schema 2 the files; both can still be read. A shape that was lost
is written again by the next snapshot with the same columns.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import make_inner_folder, os_errors_as
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.files import read_json, write_durably
from dbdyno.evidence.manifest import DAMAGED, Section
from dbdyno.snapshot.store.records import SnapshotManifest

SCHEMA = 3
READABLE = (1, 2, 3)
IN_PACK = "pack"
"""Value that replaces a file's name if the file is in the manifest's pack and named after the view."""
NAME = "manifest.json"
SHAPES = "shapes"
KINDS: dict[str, type] = {"number": int, "engine": str, "target": str, "at_ns": int, "facts": dict, "views": dict}
"""Keys that every manifest has, and their types."""
SHARED_KEYS = ("scope", "scope_by", "appearance", "columns")
"""Keys of a view's record that snapshots share."""
_FILE = re.compile(r"(?:\d{1,12}|packs/\d{1,12}-\d{1,12}-[0-9a-f]{4,16})/[\w.-]{1,200}\.parquet")
_DIGEST = re.compile(r"[0-9a-f]{16,64}")
TORN_STEP = "restore it from a copy, or run `dbdyno snap check --repair`"


def path_of(store: Path, number: int) -> Path:
    """Return the path of the manifest of a snapshot number, whether it exists or not."""
    return store / f"{number:06d}" / NAME


def write(store: Path, manifest: SnapshotManifest) -> None:
    """Write a complete manifest of the current schema, with its columns first.

    Raises:
        EvidenceError: The manifest cannot be written.
    """
    views = manifest["views"]
    shape = {view: _shared(record) for view, record in views.items()}
    records: JsonObject = {
        view: {k: v for k, v in record.items() if k not in SHARED_KEYS} for view, record in views.items()
    }
    for view, record in records.items():
        if "pack" in manifest and record.get("file") == _in_pack(manifest["pack"], view):
            record["file"] = IN_PACK
    kept = {**manifest, "schema": SCHEMA, "shape": _put_shape(store, shape), "views": records}
    kept["sum"] = checksum(kept)
    write_durably(path_of(store, manifest["number"]), _text(kept) + "\n")


def read(store: Path, number: int, shapes: dict[str, object]) -> SnapshotManifest:
    """Return the manifest of a snapshot, with its columns; `shapes` is a cache of columns by digest.

    Raises:
        EvidenceError: The manifest is missing, damaged or of an unknown schema.
    """
    path = path_of(store, number)
    found = read_json(path, Section)
    if not isinstance(found, dict) or found.get("schema") not in READABLE:
        raise EvidenceError(
            f"is not a snapshot of schema {SCHEMA} or earlier",
            where=str(path),
            next_step="use the version of dbdyno that wrote it, or move the folder away",
        )
    for name, kind in KINDS.items():
        if not isinstance(found.get(name), kind) or isinstance(found[name], bool):
            raise EvidenceError(
                f"lacks {name!r}, or its value is not of type {kind.__name__}", where=str(path), next_step=DAMAGED
            )
    if not 0 <= found["at_ns"] < 1 << 63:
        raise EvidenceError(f"has an invalid time: {found['at_ns']!r:.40}", where=str(path), next_step=DAMAGED)
    if not isinstance(found.get("cost", {}), dict):
        raise EvidenceError("the value of 'cost' is not an object", where=str(path), next_step=DAMAGED)
    if found["schema"] > 1:
        _with_shape(store, found, path, shapes)
    for view, record in found["views"].items():
        if isinstance(record, dict) and record.get("file") == IN_PACK:
            record["file"] = _in_pack(found.get("pack"), view)
        _check_view(view, record, path)
        if found["schema"] == 1:
            _check_columns(view, record, path)
    return cast("SnapshotManifest", found)


def _in_pack(pack: object, view: str) -> str:
    return f"{pack}/{view}.parquet"


def _shared(record: Mapping[str, object]) -> dict[str, object]:
    return {key: record[key] for key in SHARED_KEYS}


def checksum_problem(store: Path, number: int) -> str | None:
    """Return what is wrong with a manifest's checksum, or None if it is right or was never written."""
    kept = read_json(path_of(store, number))
    if isinstance(kept, dict) and "sum" in kept and kept["sum"] != checksum(kept):
        return "its checksum is wrong: it was changed after it was written"
    return None


def checksum(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest, computed without its own checksum."""
    return _digest(_text({key: value for key, value in manifest.items() if key != "sum"}))


def _put_shape(store: Path, shape: Mapping[str, Any]) -> str:
    """Write the columns unless they are stored already, and return their digest; a damaged file is rewritten."""
    text = _text(shape)
    digest = _digest(text)
    path = store / SHAPES / f"{digest}.json"
    try:
        known = path.read_bytes() == text.encode()
    except OSError:
        known = False
    if not known:
        with os_errors_as(EvidenceError, "cannot be made", path.parent, "check the permissions of the store"):
            make_inner_folder(path.parent, exist_ok=True)
        write_durably(path, text)
    return digest


def _with_shape(store: Path, found: JsonObject, path: Path, shapes: JsonObject) -> None:
    digest = found.get("shape")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise EvidenceError("does not list the columns of its views", where=str(path), next_step=DAMAGED)
    if digest not in shapes:
        shape = read_json(store / SHAPES / f"{digest}.json")
        if not isinstance(shape, dict) or _digest(_text(shape)) != digest:
            raise EvidenceError(
                "is damaged: its name is not the digest of its content",
                where=str(store / SHAPES / f"{digest}.json"),
                next_step="restore the file from a copy, or take a new snapshot with the same columns to write "
                "it again",
            )
        for view, record in shape.items():
            _check_columns(view, record, path)
        shapes[digest] = shape
    for view, record in found["views"].items():
        if not isinstance(record, dict) or view not in shapes[digest]:
            raise EvidenceError(f"the entry of view {view!r} is not a valid record", where=str(path), next_step=DAMAGED)
        record.update(shapes[digest][view])


def _check_view(view: str, record: Any, manifest: Path) -> None:
    """Check the record of a view, except its columns.

    Raises:
        EvidenceError: The value is not a record, or it names a file outside of the store.
    """
    file = record.get("file") if isinstance(record, dict) else None
    inside = record.get("in", 0) if isinstance(record, dict) else None
    named = file is None or (isinstance(file, str) and _FILE.fullmatch(file))
    if not named or not isinstance(inside, int):
        raise _no_record(view, record, manifest)


def _check_columns(view: str, record: Any, manifest: Path) -> None:
    """Check the columns of a view.

    Raises:
        EvidenceError: The columns are not a list of four texts each.
    """
    columns = record.get("columns", []) if isinstance(record, dict) else None
    if not isinstance(columns, list) or not all(
        isinstance(one, list) and len(one) == 4 and all(isinstance(word, str) for word in one) for one in columns
    ):
        raise _no_record(view, record, manifest)


def _no_record(view: str, record: Any, manifest: Path) -> EvidenceError:
    return EvidenceError(
        f"the entry of view {view!r} is not a valid record: {record!r:.80}", where=str(manifest), next_step=DAMAGED
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
