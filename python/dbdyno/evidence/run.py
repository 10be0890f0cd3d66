"""A run folder: one execution of a plan, and all that it recorded.

    runs/2026-11-21T10-02-11Z-redo-size-7f3a/
      manifest.json          what was planned, on what, and how it ended
      blocks/b000012.json    written last of a block: with it the block is whole
      calls/b000012.parquet  every operation
      waits/ metrics/        what was seen beside the load
      analysis.json          the model that every renderer reads
      report.html

A block counts when its record under `blocks/` is there; everything else of a block is written
before it. So a run killed at any instant is readable up to its last whole block. Survives: kill -9,
a full disk, a torn part (reported and left out). Does not survive: a lost disk.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import make_folder, make_inner_folder, sync_folder
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.manifest import DAMAGED, Manifest, Process, Section
from dbdyno.evidence.seal import seal
from dbdyno.evidence.trust import refuse_foreign
from dbdyno.evidence.upgrade import upgraded

SCHEMA = 1
DEFAULT_FOLDER = Path("runs")


@contextlib.contextmanager
def reading(what: str, where: str | None = None) -> Iterator[None]:
    """Turns what Python says of values of the wrong kind into an `EvidenceError`: they come from a file."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        raise EvidenceError(f"holds no {what} that can be read: {error}", where=where, next_step=DAMAGED) from error


@dataclass(frozen=True)
class SliceRecord:
    """One slice as it was run: which arm, whether it counts, whether it was watched."""

    arm: int
    slice: int
    counts: bool = True
    watched: bool = True


@dataclass(frozen=True)
class Block:
    """The record of one whole block. `kind` is 'warmup', 'overhead' or 'measure'."""

    index: int
    kind: str
    started_ns: int
    ended_ns: int
    rows: int
    slices: list[SliceRecord]
    marks: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    canaries: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Stem of the files of this block."""
        return f"b{self.index:06d}"


class Run:
    """One run folder and its manifest; `manifest` may be of an earlier version."""

    def __init__(self, path: Path, manifest: Manifest | Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = manifest if isinstance(manifest, Manifest) else Manifest.of(upgraded(dict(manifest)))

    @classmethod
    def open(cls, path: Path) -> Run:
        """Opens an existing run folder; raises `EvidenceError` when it is none."""
        manifest_path = path / "manifest.json"
        if not manifest_path.is_file():
            raise EvidenceError(
                "is no run folder: manifest.json is missing",
                where=str(path),
                next_step="`dbdyno runs` lists the runs",
            )
        manifest = read_json(manifest_path, Section)
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            found = manifest.get("schema") if isinstance(manifest, dict) else type(manifest)
            raise EvidenceError(
                f"has evidence schema {found}; this dbdyno reads schema {SCHEMA}",
                where=str(manifest_path),
            )
        try:
            return cls(path, manifest)
        except EvidenceError as error:
            raise EvidenceError(error.message, where=str(manifest_path), next_step=error.next_step) from error

    @property
    def id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def status(self) -> str:
        """'running', 'complete' or 'aborted'; a run whose process is gone is aborted."""
        if self.manifest.status == "running" and not is_alive(self.manifest.process or {}):
            return "aborted"
        return self.manifest.status

    def save(self, **changes: Any) -> None:
        """Puts changes into the manifest and writes it whole."""
        refuse_foreign(self.path)
        self.note(**changes)
        write_json(self.path / "manifest.json", self.manifest.to_json())

    def note(self, **changes: Any) -> None:
        """Puts changes into the manifest, to be written with the next that are saved."""
        self.manifest = self.manifest.changed(**changes)

    def add_block(self, block: Block) -> None:
        """Makes a block whole: the last file of a block to be written."""
        refuse_foreign(self.path)
        folder = self.path / "blocks"
        make_inner_folder(folder, exist_ok=True)
        write_json(folder / f"{block.name}.json", asdict(block))

    def blocks(self) -> list[Block]:
        """All whole blocks in their order."""
        files = sorted((self.path / "blocks").glob("b*.json"))
        return [_block(read_json(file), file) for file in files]

    def is_barren(self) -> bool:
        """Whether the run ended before its first block: refused by the server when it connected, say."""
        planned = self.manifest.says("blocks_planned")
        return planned and self.status == "aborted" and not any((self.path / "blocks").glob("b*.json"))

    def measured_blocks(self) -> int:
        """How many whole blocks count."""
        return sum(block.kind == "measure" for block in self.blocks())

    def calls_part(self, block: Block) -> Path:
        """The part with this block's operations."""
        return self.path / "calls" / f"{block.name}.parquet"

    def drop_leftovers(self) -> None:
        """Removes what a killed run left aside, and parts without a block record."""
        import shutil

        refuse_foreign(self.path)
        for file in self.path.glob("**/.*.tmp"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        whole = {block.name for block in self.blocks()}
        for kind in ("calls", "waits", "metrics"):
            for file in (self.path / kind).glob("b*.parquet*"):
                if file.name.endswith(".tmp") or file.name.removesuffix(".parquet") not in whole:
                    file.unlink()


def new_run(folder: Path, title: str, manifest: Mapping[str, Any], *, name: str | None = None) -> Run:
    """Makes a run folder below `folder` with status running; raises `EvidenceError`."""
    import secrets

    now = datetime.now(UTC)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "run"
    path = folder / (name or f"{now:%Y-%m-%dT%H-%M-%SZ}-{slug}-{secrets.token_hex(2)}")
    try:
        make_folder(path)
        for made in (folder, folder.absolute().parent):
            sync_folder(made)
    except OSError as error:
        raise EvidenceError(
            f"a run folder cannot be made: {error.strerror}",
            where=str(path),
            next_step="choose another place with --out",
        ) from error
    run = Run(path, {"schema": SCHEMA, **manifest})
    if run.manifest.says("plan"):
        run.note(seal=seal(run.manifest.plan))
    run.save(status="running", started_at=now.isoformat(), process=this_process())
    return run


def list_runs(folder: Path) -> Iterator[Run]:
    """All runs below `folder`, oldest first; a folder that is no run is passed over."""
    for manifest in sorted(folder.glob("*/manifest.json")):
        try:
            yield Run.open(manifest.parent)
        except EvidenceError:
            continue


def find_run(text: str, folder: Path) -> Run:
    """A run by its path (or that of a folder that holds nothing but it), its name, the end or beginning of its name,
    or 'last': the last one that has evidence or is still at work."""
    if (Path(text) / "manifest.json").is_file():
        return Run.open(Path(text))
    inside = list(list_runs(Path(text))) if Path(text).is_dir() else []
    if len(inside) == 1:
        return inside[0]
    if inside:
        raise EvidenceError(f"holds {len(inside)} runs", where=text, next_step=f"name one, as {inside[-1].path}")
    runs = list(list_runs(folder))
    if text == "last" and runs:
        return next((run for run in reversed(runs) if not run.is_barren()), runs[-1])
    matches = [r for r in runs if r.id == text] or [r for r in runs if r.id.endswith(text) or r.id.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    found = "names no run" if not matches else f"names {len(matches)} runs"
    raise EvidenceError(
        f"{text!r} {found} below {folder}",
        next_step="`dbdyno runs` lists the runs; a name, its last four characters, a path or 'last' names one",
    )


def this_process(pid: int | None = None) -> Process:
    """What tells this process (or another one) from a later one with the same number."""
    pid = pid or os.getpid()
    return {"pid": pid, "started": _started(pid)}


def _started(pid: int) -> str | None:
    """The kernel's start time of a process (ticks since boot), with the boot's own id; None for one
    that has ended and only waits to be noticed."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    state, *fields = stat.rsplit(")", 1)[1].split()
    return None if state == "Z" else f"{boot}:{fields[18]}"


def is_alive(process: Process) -> bool:
    """Whether the process that `this_process` described still runs on this machine."""
    pid = process.get("pid")
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # the latter: no process can have that number
        return False
    except PermissionError:
        pass
    return process.get("started") is None or process["started"] == _started(pid)


def _block(record: Any, file: Path) -> Block:
    with reading("block record", str(file)):
        slices = [SliceRecord(**s) for s in record.pop("slices")]
        block = Block(slices=slices, **record)
        numbers = (block.index, block.started_ns, block.ended_ns, block.rows, *(s.arm for s in slices))
        if not all(type(number) is int for number in (*numbers, *(s.slice for s in slices))):
            raise TypeError("a number is none")
        return block
