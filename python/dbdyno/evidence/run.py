"""A run folder: one execution of a plan and everything that it recorded.

    runs/2026-11-21T10-02-11Z-redo-size-7f3a/
      manifest.json          what was planned, on what, and how it ended
      blocks/b000012.json    the last file written of a block: with it the block is complete
      calls/b000012.parquet  every operation
      waits/ metrics/        what was sampled beside the load
      analysis.json          the model that every renderer reads
      report.html

A block counts if its record under `blocks/` exists; all other files of a block are written before it. So a run killed
at any moment is readable up to its last complete block. A run folder survives kill -9, a full disk and a damaged part
(which is reported and left out). It does not survive the loss of the disk.
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
from dbdyno.base.files import make_folder, make_inner_folder, os_errors_as, sync_folder
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.manifest import DAMAGED, Manifest, Process, Section
from dbdyno.evidence.seal import seal
from dbdyno.evidence.trust import refuse_foreign
from dbdyno.evidence.upgrade import upgrade_manifest

SCHEMA = 1
DEFAULT_FOLDER = Path("runs")


@contextlib.contextmanager
def type_errors_as_evidence_errors(what: str, where: str | None = None) -> Iterator[None]:
    """Convert Python's errors about values of the wrong type in a file into an `EvidenceError`.

    Args:
        what: the object that is read, for the message.
        where: its file.

    Raises:
        EvidenceError: the block under `with` raised such an error.
    """
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        raise EvidenceError(f"contains no readable {what}: {error}", where=where, next_step=DAMAGED) from error


@dataclass(frozen=True)
class SliceRecord:
    """One slice as it was run: its arm, whether it counts and whether it was watched by the sampler."""

    arm: int
    slice: int
    counts: bool = True
    watched: bool = True


@dataclass(frozen=True)
class Block:
    """Record of one complete block; `kind` is 'warmup', 'overhead' or 'measure'."""

    index: int
    kind: str
    started_ns: int
    ended_ns: int
    rows: int
    slices: list[SliceRecord]
    marks: list[str] = field(default_factory=list)
    report: JsonObject = field(default_factory=dict)
    canaries: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the stem of this block's file names."""
        return f"b{self.index:06d}"


class Run:
    """One run folder and its manifest; the given `manifest` may be of an earlier version."""

    def __init__(self, path: Path, manifest: Manifest | Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = (
            manifest if isinstance(manifest, Manifest) else Manifest.from_values(upgrade_manifest(dict(manifest)))
        )

    def _repr_html_(self) -> str:
        from dbdyno.base.notebook import facts_table

        known = self.manifest
        word = known.verdict.get("word") if known.verdict else None
        facts = {"title": known.title, "status": known.status, "started": known.started_at, "folder": self.path}
        return facts_table(self.id, facts | {"verdict": word})

    @classmethod
    def open(cls, path: Path) -> Run:
        """Open an existing run folder.

        Raises:
            EvidenceError: the folder is not a run, or has another evidence schema.
        """
        manifest_path = path / "manifest.json"
        if not manifest_path.is_file():
            raise EvidenceError(
                f"is not a run folder: {'manifest.json is missing' if path.exists() else 'there is no such folder'}",
                where=str(path),
                next_step="list the runs with `dbdyno runs`",
            )
        manifest = read_json(manifest_path, Section)
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            found = manifest.get("schema") if isinstance(manifest, dict) else type(manifest)
            raise EvidenceError(
                f"has evidence schema {found}; this version of dbdyno reads schema {SCHEMA}",
                where=str(manifest_path),
                next_step="use the version of dbdyno that wrote the run",
            )
        try:
            return cls(path, manifest)
        except EvidenceError as error:
            raise EvidenceError(error.message, where=str(manifest_path), next_step=error.next_step) from error

    @property
    def id(self) -> str:
        """Return the name of the folder."""
        return self.path.name

    @property
    def status(self) -> str:
        """Return 'running', 'complete' or 'aborted'; a run whose process ended before it was complete is 'aborted'."""
        if self.manifest.status == "running" and not is_alive(self.manifest.process or {}):
            return "aborted"
        return self.manifest.status

    def save(self, **changes: Any) -> None:
        """Change values of the manifest and write the manifest durably.

        Raises:
            EvidenceError: another user could have written the folder, or the file cannot be written.
        """
        refuse_foreign(self.path)
        self.update_manifest(**changes)
        write_json(self.path / "manifest.json", self.manifest.to_json())

    def update_manifest(self, **changes: Any) -> None:
        """Change values of the manifest in memory; the next `save` writes them."""
        self.manifest = self.manifest.with_values(**changes)

    def add_block(self, block: Block) -> None:
        """Write the record of a block, the last of its files: this makes the block complete.

        Raises:
            EvidenceError: another user could have written the folder, or the file cannot be written.
        """
        refuse_foreign(self.path)
        folder = self.path / "blocks"
        make_inner_folder(folder, exist_ok=True)
        write_json(folder / f"{block.name}.json", asdict(block))

    def blocks(self) -> list[Block]:
        """Return all complete blocks in order."""
        files = sorted((self.path / "blocks").glob("b*.json"))
        return [_block(read_json(file), file) for file in files]

    def has_no_blocks(self) -> bool:
        """Return True if the run ended before its first block, e.g. because the server refused the connection."""
        planned = self.manifest.has("blocks_planned")
        return planned and self.status == "aborted" and not any((self.path / "blocks").glob("b*.json"))

    def measured_blocks(self) -> int:
        """Return the number of complete blocks that count for the result."""
        return sum(block.kind == "measure" for block in self.blocks())

    def calls_part(self, block: Block) -> Path:
        """Return the path of the part with this block's operations."""
        return self.path / "calls" / f"{block.name}.parquet"

    def drop_leftovers(self) -> None:
        """Remove temporary files of a killed run, and parts without a block record.

        Raises:
            EvidenceError: another user could have written the folder.
        """
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
    """Create a run folder below `folder`, with the status 'running'.

    Raises:
        EvidenceError: the folder cannot be created.
    """
    import secrets

    now = datetime.now(UTC)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "run"
    path = folder / (name or f"{now:%Y-%m-%dT%H-%M-%SZ}-{slug}-{secrets.token_hex(2)}")
    with os_errors_as(EvidenceError, "a run folder cannot be made", path, "choose another place with --out"):
        make_folder(path)
        for made in (folder, folder.absolute().parent):
            sync_folder(made)
    run = Run(path, {"schema": SCHEMA, **manifest})
    if run.manifest.has("plan"):
        run.update_manifest(seal=seal(run.manifest.plan))
    run.save(status="running", started_at=now.isoformat(), process=this_process())
    return run


def list_runs(folder: Path) -> Iterator[Run]:
    """Yield all runs below `folder`, oldest first; folders that are no runs are skipped."""
    for manifest in sorted(folder.glob("*/manifest.json")):
        try:
            yield Run.open(manifest.parent)
        except EvidenceError:
            continue


def find_run(text: str, folder: Path) -> Run:
    """Return the run that `text` names.

    Args:
        text: the run's path (or the path of a folder that contains this run only), its name, the beginning or end of
            its name, or 'last': the latest run that has evidence or is still running.
        folder: where runs are searched by name.

    Raises:
        EvidenceError: `text` names no run, or several.
    """
    if (Path(text) / "manifest.json").is_file():
        return Run.open(Path(text))
    inside = list(list_runs(Path(text))) if Path(text).is_dir() else []
    if len(inside) == 1:
        return inside[0]
    if inside:
        raise EvidenceError(
            f"contains {len(inside)} runs", where=text, next_step=f"name one of them, such as {inside[-1].path}"
        )
    runs = list(list_runs(folder))
    if text == "last" and runs:
        return next((run for run in reversed(runs) if not run.has_no_blocks()), runs[-1])
    matches = [r for r in runs if r.id == text] or [r for r in runs if r.id.endswith(text) or r.id.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    found = "names no run" if not matches else f"names {len(matches)} runs"
    raise EvidenceError(
        f"{text!r} {found} in {folder}",
        next_step="list the runs with `dbdyno runs`; give a name, its last four characters, a path or 'last'",
    )


def this_process(pid: int | None = None) -> Process:
    """Return the identity of this process (or of `pid`), which a later process with the same number does not share."""
    pid = pid or os.getpid()
    return {"pid": pid, "started": _start_of(pid)}


def _start_of(pid: int) -> str | None:
    """Return the kernel's start time of a process (ticks since boot) and the boot's id; None for an ended process.

    A zombie counts as ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    state, *fields = stat.rsplit(")", 1)[1].split()
    return None if state == "Z" else f"{boot}:{fields[18]}"


def is_alive(process: Process) -> bool:
    """Return True if the process that `this_process` described still runs on this machine."""
    pid = process.get("pid")
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # OverflowError: no process can have this number
        return False
    except PermissionError:
        pass
    return process.get("started") is None or process["started"] == _start_of(pid)


def _block(record: Any, file: Path) -> Block:
    with type_errors_as_evidence_errors("block record", str(file)):
        slices = [SliceRecord(**s) for s in record.pop("slices")]
        block = Block(slices=slices, **record)
        numbers = (block.index, block.started_ns, block.ended_ns, block.rows, *(s.arm for s in slices))
        if not all(type(number) is int for number in (*numbers, *(s.slice for s in slices))):
            raise TypeError("a number is missing")
        return block
