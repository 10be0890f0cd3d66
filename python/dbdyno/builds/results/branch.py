"""A branch of a git repository that holds only results; the working tree is never touched.

Files are only added, under unique names, so two histories are merged by combining their files. With a remote, its
branch is fetched first and the new commit is pushed; if somebody else pushed meanwhile, both steps are repeated.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.builds.bisect.commits import GitError, git, git_bytes

BRANCH = "branch:"
NAME = re.compile(r"[\w][\w./-]{0,100}")
TRIES = 5
PERSON = {"user.name": ("NAME", "dbdyno"), "user.email": ("EMAIL", "dbdyno@localhost")}


class ResultBranch:
    """Results in a branch of the git repository at `repository`; `remote` is fetched from and pushed to."""

    def __init__(self, repository: Path, name: str, remote: str | None = None) -> None:
        if not NAME.fullmatch(name) or ".." in name or name.endswith((".lock", "/", ".")):
            raise EvidenceError(f"{name!r} is not a valid branch name", next_step=f"write {BRANCH}results")
        self.repository, self.remote, self.ref = repository, remote, f"refs/heads/{name}"
        self.name = name

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of the branch's .json files.

        Raises:
            EvidenceError: The branch exists neither in the repository nor at the remote.
        """
        tip = self._tip() or self._fetch()
        if tip is None:
            step = "create it with `dbdyno results push`, or get it from a remote with `git fetch`"
            raise EvidenceError("is not a branch of this repository", where=self.name, next_step=step)
        blobs = {path: blob for path, blob in self._blobs(tip).items() if path.endswith(".json")}
        yield from zip(blobs, self._contents(list(blobs.values())), strict=True)

    def add(self, files: Mapping[str, bytes], note: str) -> list[str]:
        """Add the files that the branch does not have in one commit, and return their names.

        Raises:
            EvidenceError: The branch is checked out.
            GitError: git fails, or the remote rejects the push five times.
        """
        if self._is_checked_out():
            raise EvidenceError(
                "is checked out, so nothing can be pushed to it",
                where=self.name,
                next_step="check out another branch, then push",
            )
        for attempt in range(TRIES):
            base, own = self._fetch() or self._tip(), self._tip()
            known = self._blobs(base) if base else {}
            more = {path: blob for path, blob in self._blobs(own).items() if path not in known} if own else {}
            new = [path for path in files if path not in known and path not in more]
            more |= {path: git(self.repository, "hash-object", "-w", "--stdin", data=files[path]) for path in new}
            tip = self._commit(base, more, note) if more else base
            if tip is not None and tip != own:
                git(self.repository, "update-ref", self.ref, tip, *([own] if own else []))
            if self.remote is None or tip is None:
                return new
            try:
                git(self.repository, "push", "--quiet", self.remote, f"{tip}:{self.ref}")
            except GitError:
                if attempt == TRIES - 1:
                    raise
                continue
            return new
        raise AssertionError

    def fetch(self) -> None:
        """Merge the remote's files into the branch."""
        self.add({}, "join results")

    def _tip(self) -> str | None:
        try:
            return git(self.repository, "rev-parse", "--verify", "--quiet", f"{self.ref}^{{commit}}") or None
        except GitError:
            return None

    def _fetch(self) -> str | None:
        """Return the tip of the remote's branch after a fetch; None without a remote or without that branch."""
        if self.remote is None:
            return None
        if not git(self.repository, "ls-remote", self.remote, self.ref):
            return None
        git(self.repository, "fetch", "--quiet", self.remote, self.ref)
        return git(self.repository, "rev-parse", "--verify", "FETCH_HEAD^{commit}")

    def _is_checked_out(self) -> bool:
        listed = git(self.repository, "worktree", "list", "--porcelain").splitlines()
        return f"branch {self.ref}" in listed

    def _blobs(self, tip: str) -> dict[str, str]:
        """Return the files of a commit: their object names by path."""
        entries = git(self.repository, "ls-tree", "-r", "-z", tip).split("\0")
        rows = [entry.split("\t", 1) for entry in entries if entry.startswith("100")]
        return {path: about.split()[2] for about, path in rows}

    def _contents(self, blobs: list[str]) -> Iterator[bytes]:
        """Yield the contents of git blobs, in order, from one `git cat-file` process."""
        given = "".join(f"{blob}\n" for blob in blobs).encode()
        text, at = git_bytes(self.repository, "cat-file", "--batch", data=given), 0
        for _ in blobs:
            end = text.index(b"\n", at)
            size = int(text[at:end].split()[2])
            yield text[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def _commit(self, base: str | None, blobs: Mapping[str, str], note: str) -> str:
        """Return a new commit on `base` with these files added, made with a separate index."""
        with tempfile.TemporaryDirectory() as folder:
            own = {"GIT_INDEX_FILE": str(Path(folder) / "index"), **self._person()}
            if base:
                git(self.repository, "read-tree", base, environment=own)
            rows = "".join(f"100644 {blob}\t{path}\n" for path, blob in blobs.items())
            git(self.repository, "update-index", "--add", "--index-info", data=rows.encode(), environment=own)
            tree = git(self.repository, "write-tree", environment=own)
            parents = ("-p", base) if base else ()
            return git(self.repository, "commit-tree", tree, *parents, "-m", note, environment=own)

    def _person(self) -> dict[str, str]:
        """Return the author for git's commits if the user has configured none."""
        found: dict[str, str] = {}
        for key, (word, default) in PERSON.items():
            try:
                git(self.repository, "config", key)
            except GitError:
                found |= {f"GIT_AUTHOR_{word}": default, f"GIT_COMMITTER_{word}": default}
        return found
