"""Places for results: a folder, or `branch:NAME` of the git repository of the current folder.

PLAN-4f1c2a9b/MACHINE/RUN.json        one file per run; files are added, never changed
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import os_errors_as, write_atomically
from dbdyno.base.json_types import JsonObject
from dbdyno.builds.results.branch import BRANCH, ResultBranch
from dbdyno.study.analysis.measured.result_file import ResultRun, parse_result

_FREE = ("title", "question")


class Place(Protocol):
    """Protocol of a place where results are stored."""

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of all files that may be results."""

    def add(self, files: Mapping[str, bytes], note: str) -> list[str]:
        """Add the files that the place does not have, and return their names."""


class ResultFolder:
    """A folder of results."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of the files with the suffix .json; links are not followed."""
        for file in sorted(self.path.glob("*/*/*.json")):
            if file.is_file() and not file.is_symlink():
                yield file.relative_to(self.path).as_posix(), file.read_bytes()

    def add(self, files: Mapping[str, bytes], note: str) -> list[str]:
        """Write the files that the folder does not have, each completely or not at all, and return their names.

        Raises:
            EvidenceError: A file cannot be written.
        """
        added = []
        for name, content in files.items():
            path = self.path / name
            if path.exists():
                continue
            with os_errors_as(EvidenceError, "cannot be written", path, "free disk space or check the permissions"):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content, durable=True)
            added.append(name)
        return added


def place_of(text: str, remote: str | None = None) -> Place:
    """Return the place that a text names.

    Raises:
        EvidenceError: The name of the branch is not valid, or a remote is given for a folder.
    """
    if text.startswith(BRANCH):
        return ResultBranch(Path(), text.removeprefix(BRANCH), remote)
    if remote is not None:
        raise EvidenceError("is a folder, so it has no remote", where=text, next_step=f"write {BRANCH}NAME")
    return ResultFolder(Path(text))


def results_in(place: Place) -> tuple[list[ResultRun], list[EvidenceError]]:
    """Return the results of a place, oldest first, and an error for each file that is not a result."""
    found, refused = [], []
    for name, content in place.files():
        try:
            found.append(parse_result(content, name))
        except EvidenceError as error:
            refused.append(error)
    return sorted(found, key=lambda run: (str(run.manifest.started_at), run.id)), refused


def file_of(result: JsonObject) -> tuple[str, bytes]:
    """Return the file name and the content for a result."""
    plan = result["manifest"]["plan"]
    essence = json.dumps({key: value for key, value in plan.items() if key not in _FREE}, sort_keys=True, default=str)
    word = re.sub(r"[^a-z0-9]+", "-", str(plan.get("title", "")).lower()).strip("-")[:40] or "plan"
    folder = f"{word}-{hashlib.sha256(essence.encode()).hexdigest()[:8]}"
    name = re.sub(r"[^\w.-]+", "-", str(result["run"])).strip(".-") or "run"
    path = PurePosixPath(folder, str(result["machine"]["name"]), f"{name}.json")
    text = json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    return str(path), (_lines(text) + "\n").encode()


def push(place: Place, results: Sequence[JsonObject], note: str) -> list[str]:
    """Add results to a place, and return the names of the new files."""
    return place.add(dict(file_of(result) for result in results), note)


def _lines(text: str) -> str:
    """Return compact JSON with one part per line, so that people and `git diff` can read it."""
    for key in ("machine", "commit", "engine", "manifest", "blocks", "values"):
        text = text.replace(f',"{key}":', f',\n"{key}":', 1)
    return text
