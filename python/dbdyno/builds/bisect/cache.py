"""Builds of commits, each in its own git worktree, kept from one search to the next.

    CACHE/9f86d081884c-3e1c/         the worktree of a commit, built
    CACHE/9f86d081884c-3e1c.json     how the build ended; written last, so a build without this file is repeated
    CACHE/9f86d081884c-3e1c.log      what the build printed

The part after the dash identifies the build command: with another command, the commit is built again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.base.errors import PlanError
from dbdyno.base.files import os_errors_as, write_atomically
from dbdyno.base.processes import child_environment
from dbdyno.builds.bisect.commits import Commit, GitError, git

LOG_SHOWN = 300


@dataclass
class BuildCache:
    """Builds of the commits of one repository.

    Attributes:
        repository: The repository.
        folder: Folder of the builds.
        command: Shell command that builds, run at the top of a worktree; empty if there is nothing to build.
        note: Receives notes for the user.
    """

    repository: Path
    folder: Path
    command: str
    note: Callable[[str], None] = lambda _: None
    failed: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock on the folder, so that no second search builds there at the same time.

        Raises:
            PlanError: Another search holds the lock, or the folder cannot be created.
        """
        with os_errors_as(PlanError, "cannot be made", self.folder, "name another folder with --cache"):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise PlanError(
                "is in use by another search",
                where=str(self.folder),
                next_step="wait until the other search has ended, or name another folder with --cache",
            ) from error
        finally:
            os.close(descriptor)

    def build(self, commit: Commit) -> Path | None:
        """Return the folder of a commit's build, after building the commit if necessary; None if the build fails."""
        place = self.folder_of(commit)
        record = place.with_name(f"{place.name}.json")
        if not record.exists():
            self._make(commit, place, record)
        known = json.loads(record.read_text())
        if known["ok"]:
            return place
        self.failed[commit.name] = known["said"]
        return None

    def folder_of(self, commit: Commit) -> Path:
        """Return the folder of a commit's build."""
        word = hashlib.sha256(self.command.encode()).hexdigest()[:4]
        return self.folder / f"{commit.short}-{word}"

    def clear(self) -> None:
        """Remove all builds of this repository."""
        for record in self.folder.glob("*-*.json"):
            place = record.with_suffix("")
            with contextlib.suppress(GitError):
                git(self.repository, "worktree", "remove", "--force", str(place))
            for file in (record, place.with_name(f"{place.name}.log")):
                file.unlink(missing_ok=True)
        git(self.repository, "worktree", "prune")

    def _make(self, commit: Commit, place: Path, record: Path) -> None:
        """Check out a commit and build it; leftovers of an interrupted build are removed first."""
        self.note(f"building {commit.short} {commit.subject[:60]}")
        if place.exists():
            with contextlib.suppress(GitError):
                git(self.repository, "worktree", "remove", "--force", "--force", str(place))
        git(self.repository, "worktree", "prune")
        git(self.repository, "worktree", "add", "--force", "--detach", str(place), commit.name)
        began = time.monotonic()
        code, said = self._build(place) if self.command else (0, "")
        seconds = round(time.monotonic() - began, 3)
        known = {"ok": code == 0, "commit": commit.name, "command": self.command, "seconds": seconds, "said": said}
        write_atomically(record, (json.dumps(known, indent=1) + "\n").encode(), durable=True)
        if code:
            self.note(f"{commit.short} does not build and is skipped: {said}; its log: {place}.log")

    def _build(self, place: Path) -> tuple[int, str]:
        """Run the build command and return its exit code, and the last line that it printed if it failed."""
        log = place.with_name(f"{place.name}.log")
        with log.open("wb") as out:
            running = subprocess.Popen(
                ["/bin/sh", "-c", self.command],
                cwd=place,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                running.wait()
            finally:  # after a signal, and for what the build left running
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        lines = log.read_text(errors="replace").strip().splitlines()
        last = lines[-1][:LOG_SHOWN] if lines else "it printed nothing"
        return running.returncode, "" if running.returncode == 0 else f"exit {running.returncode}: {last}"


def default_cache(repository: Path) -> Path:
    """Return the folder of the builds of a repository, in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME")
    cache = Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache"
    common = git(repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
    name = hashlib.sha256(common.encode()).hexdigest()[:12]
    return cache / "dbdyno" / "builds" / name
