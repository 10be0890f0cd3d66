"""The manifest of a run: what was planned, on what, and how it ended; read, checked and written only here.

A manifest contains only what its kind of run knows: a recording of cells has no arms, an import of traces no seed. A
field with a default may be missing. A missing field without a default raises `EvidenceError` when it is read, since a
manifest is a file that anybody may have changed. Keys written by a later version are kept. Manifests of earlier
versions are converted by `upgrade` before they get here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject

DAMAGED = "restore it from a copy: another program changed the file"


class Section(dict[str, Any]):
    """An object below the first level of the manifest; reading a missing key raises `EvidenceError`."""

    def __missing__(self, name: str) -> Any:
        raise EvidenceError(f"the manifest lacks {name!r}", next_step=DAMAGED)


class Process(TypedDict, total=False):
    """Identity of a process: distinguishes it from a later process with the same number."""

    pid: int
    started: str | None


class ArmRecord(TypedDict, total=False):
    """An arm as it was run: `changes` has its settings, `how` says how they take effect, `was` has the old values."""

    name: str
    description: str
    sessions: int
    rate_per_s: float | None
    protocol: str
    target: str | None
    changes: dict[str, str]
    how: dict[str, str]
    was: dict[str, str]
    against: str | None


@dataclass(frozen=True, init=False, eq=False, repr=False, kw_only=True)
class Manifest:
    """A manifest; create it with `from_values`."""

    # in every run
    schema: int
    kind: str = ""
    id: str = ""
    title: str = ""
    status: str = "aborted"
    started_at: str = ""
    ended: str = ""
    process: Process | None = None
    tool_version: str | None = None
    python: str = ""
    seed: int
    """Seed from which the order of the arms is drawn."""
    reads: Section
    """Instructions for reading the evidence, see `bench.protocol.EvidenceReading`."""
    verdict: Section | None = None
    """Headline of the run's analysis, for lists of runs."""

    # in the run of a plan on a bench
    plan: Section
    """The plan in the form of `Plan.to_dict`."""
    seal: str | None = None
    question: str
    study: str | None
    bench: str
    switch: str
    switch_reason: str
    notes: Sequence[str] = ()
    slice_ns: int | None = None
    turn_ns: int | None = None
    blocks_planned: int
    arms: list[ArmRecord]
    targets: dict[str, Section]
    resumed: Sequence[int] = ()
    """Number of complete blocks at each resumption of the run."""
    wall_s: float
    race: Section
    volumes: Sequence[Section] = ()
    """Modelled devices below the servers, each with what it carries and the cost of a request through the kernel."""

    # in runs on one kind of bench only
    host: Section | None = None
    server_settings: Sequence[Section] = ()
    settings_put_back: bool = False
    machine: Section
    logs: Sequence[Section] = ()
    iorm: Section
    restored: bool = True
    target: Section
    flash: Section
    flows: Section

    # in a recording of cells
    cells: Sequence[str] = ()
    every_s: float | None = None
    addresses: Mapping[str, Sequence[str]] | None = None
    configuration: Mapping[str, Any] | None = None

    # in an import of the output of another program
    dated_by: str = ""
    """Source of the time if the imported file has none: "file" for its modification time, "option" for --started."""

    # in an import of traces or of an archive
    files: Sequence[Any] = ()
    totals: Section | None = None
    unread: Section
    warnings: Sequence[Any] = ()
    refused: Sequence[Any] = ()

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Manifest:
        """Return the manifest with these values.

        Raises:
            EvidenceError: a value is not of the type of its field.
        """
        made = cls()
        for name, value in values.items():
            allowed = kinds().get(name, ())
            if allowed and not isinstance(value, allowed):
                words = " or ".join(kind.__name__ for kind in allowed if kind is not NoneType)
                raise EvidenceError(f"lacks {name!r}, or its value is not of type {words}", next_step=DAMAGED)
            made.__dict__[name] = value
        return made

    def has(self, name: str) -> bool:
        """Return True if the manifest contains this key."""
        return name in self.__dict__

    def with_values(self, **changes: object) -> Manifest:
        """Return a copy with these values changed.

        Raises:
            EvidenceError: a value is not of the type of its field.
        """
        return Manifest.from_values({**self.__dict__, **changes})

    def to_json(self) -> JsonObject:
        """Return the values of the manifest in the order in which they were set."""
        return dict(self.__dict__)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise EvidenceError(f"the manifest lacks {name!r}", next_step=DAMAGED)


@cache
def kinds() -> dict[str, tuple[type, ...]]:
    """Return the allowed Python types of each field of a manifest; an empty tuple allows any type."""
    return {name: _kinds(hint) for name, hint in get_type_hints(Manifest).items()}


def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the Python types that JSON yields for an annotation, or an empty tuple if any type will do."""
    if isinstance(hint, UnionType):
        parts = [_kinds(part) for part in get_args(hint)]
        return tuple(kind for part in parts for kind in part)
    origin = get_origin(hint) or hint
    if is_typeddict(origin) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return (dict,)
    if origin is Sequence:
        return (list, tuple)
    return (int, float) if origin is float else (origin,)
