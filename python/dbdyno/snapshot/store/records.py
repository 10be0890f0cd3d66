"""Types of a manifest's content: the module `manifest` reads, checks and writes it."""

from __future__ import annotations

from typing import TypedDict

from dbdyno.base.json_types import JsonObject

ViewRecord = TypedDict(
    "ViewRecord",
    {
        "scope": str,
        "scope_by": str | None,
        "appearance": str,
        "elapsed_ns": int,
        "columns": list[list[str]],
        "rows": int,
        "problem": str | None,
        "next_step": str | None,
        "file": str,
        "in": int,
        "digest": str,
        "file_sum": str,
    },
    total=False,
)
"""Record of a view: its columns (name, kind, unit, type), and where its rows are or why it was not read.

`in` is the number that marks its rows in the file of a pack.
"""


class SnapshotManifest(TypedDict, total=False):
    """Content of a manifest.

    `merged` are the numbers of pruned snapshots whose samples are in this one; `pruned` is how many there were in
    total.
    """

    schema: int
    number: int
    engine: str
    target: str
    at: str
    at_ns: int
    note: str | None
    facts: JsonObject
    cost: JsonObject
    views: dict[str, ViewRecord]
    shape: str
    sum: str
    pack: str
    pruned: int
    merged: list[int]
