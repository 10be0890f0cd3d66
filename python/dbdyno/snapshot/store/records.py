"""What a snapshot's manifest holds, as types: read and checked by `manifest`, written from them."""

from __future__ import annotations

from typing import Any, TypedDict

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
"""A view: its columns (name, kind, unit, type), where its rows are (`in`: under which number of a pack), or why it was
not read."""


class Taken(TypedDict, total=False):
    """A manifest. `merged` are the numbers that were pruned into this one, `pruned` how many."""

    schema: int
    number: int
    engine: str
    target: str
    at: str
    at_ns: int
    note: str | None
    facts: dict[str, Any]
    cost: dict[str, Any]
    views: dict[str, ViewRecord]
    shape: str
    sum: str
    pack: str
    pruned: int
    merged: list[int]
