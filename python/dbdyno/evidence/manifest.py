"""The manifest of a run: what was planned, on what, and how it ended. Read and checked here alone, and written from it.

A manifest says only what its kind of run knows: a recording of cells has no arms, an import of traces no seed. What
a field's default stands for need not be there; what has none and is missing is an `EvidenceError` when it is asked
for, since a manifest is a file like any other. What a later version adds is kept as it is. Manifests of earlier
versions are brought up by `upgrade` before they get here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from dbdyno.base.errors import EvidenceError

DAMAGED = "the file was changed by something else; restore it from a copy"


class Section(dict[str, Any]):
    """An object below the manifest's first level; what it lacks is an `EvidenceError`."""

    def __missing__(self, name: str) -> Any:
        raise EvidenceError(f"the manifest lacks {name!r}", next_step=DAMAGED)


class Process(TypedDict, total=False):
    """What tells a process from a later one with the same number."""

    pid: int
    started: str | None


class ArmRecord(TypedDict, total=False):
    """An arm as it was run. `changes`: what it sets, `how` that takes effect, and what `was` before."""

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
    """A manifest; `of` makes one of its values."""

    # of every run
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
    """From which the order of the arms is drawn."""
    reads: Section
    """How the evidence is read: `bench.protocol.Reads`."""
    verdict: Section | None = None
    """The headline of its analysis, for lists of runs."""

    # of a plan on a bench
    plan: Section
    """As `Plan.to_dict` has it."""
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
    """How many blocks there were each time that it went on after a cut."""
    wall_s: float
    race: Section

    # of one kind of bench
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

    # of a recording of cells
    cells: Sequence[str] = ()
    every_s: float | None = None
    addresses: Mapping[str, Sequence[str]] | None = None
    configuration: Mapping[str, Any] | None = None

    # of an import: of traces, or of an archive
    files: Sequence[Any] = ()
    totals: Section | None = None
    unread: Section
    warnings: Sequence[Any] = ()
    refused: Sequence[Any] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Manifest:
        """The manifest that says this; raises `EvidenceError` where a value is of another kind than its field."""
        made = cls()
        for name, value in values.items():
            allowed = kinds().get(name, ())
            if allowed and not isinstance(value, allowed):
                words = " or ".join(kind.__name__ for kind in allowed if kind is not NoneType)
                raise EvidenceError(f"has no {words} as {name!r}", next_step=DAMAGED)
            made.__dict__[name] = value
        return made

    def says(self, name: str) -> bool:
        """Whether it says anything of this."""
        return name in self.__dict__

    def changed(self, **changes: object) -> Manifest:
        """The same with other values."""
        return Manifest.of({**self.__dict__, **changes})

    def to_json(self) -> dict[str, Any]:
        """What it says, in the order in which it was said."""
        return dict(self.__dict__)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise EvidenceError(f"the manifest lacks {name!r}", next_step=DAMAGED)


@cache
def kinds() -> dict[str, tuple[type, ...]]:
    """What a manifest holds under its names, where it has them."""
    return {name: _kinds(hint) for name, hint in get_type_hints(Manifest).items()}


def _kinds(hint: Any) -> tuple[type, ...]:
    """The Python types that JSON gives for an annotation; empty where any will do."""
    if isinstance(hint, UnionType):
        parts = [_kinds(part) for part in get_args(hint)]
        return tuple(kind for part in parts for kind in part)
    origin = get_origin(hint) or hint
    if is_typeddict(origin) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return (dict,)
    if origin is Sequence:
        return (list, tuple)
    return (int, float) if origin is float else (origin,)
