"""What may be shown: the runs of one folder and the stores of another, found by name and never by path.

A name is looked up among the entries of the folder, so no address leads out of it. Links that point elsewhere are
treated as missing: another user's folder may say what was observed, but not which of this user's files are shown.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.evidence.files import read_json
from dbdyno.evidence.run import Run
from dbdyno.move.ledger.folder import INNER
from dbdyno.pages import BUILDERS
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.sums.index import snapshots_in_range, targets
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.ui.links import Links
from dbdyno.ui.preparer import Preparer
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.stretch import Stretch

SAVED, SAVED_MOST = ".json", 64
T = TypeVar("T")
LARGEST = 16 << 20
"""Maximum size of a saved page [bytes]; larger ones are skipped."""
STORE_FOLDERS = frozenset({"packs", "shapes", "sums", "baselines", "plans"})
"""Folders within a store that are not stores themselves."""


@dataclass(frozen=True)
class Server:
    """A target in a store; `name` is the store's name within the folder, "" for the folder itself."""

    name: str
    store: Store
    target: str
    preparer: Preparer | None

    def prepare(self, chain: list[Snapshot]) -> None:
        """Check that the sums between these snapshots exist, so that a page need not wait for them.

        Raises:
            NotReadyError: The sums are still being computed.
        """
        if self.preparer is not None:
            self.preparer.check(self.store, chain)

    def model(self, known: ResultCache[T], stretch: Stretch, make: Callable[[Interval], T], what: str = "") -> T:
        """Return what `make` returns for an interval, cached; `what` distinguishes results about the same interval.

        Raises:
            NotReadyError: Sums of the interval are being computed.
        """
        self.prepare(stretch.chain)

        def made() -> T:
            with Interval(self.store, *stretch.ends) as interval:
                return make(interval)

        return known.get(f"{self.store.folder} {self.target} {stretch.numbers}{what}", len(stretch.chain), made)

    def snapshots(self) -> Sequence[Snapshot]:
        """Return the snapshots of the server from the index, by number."""
        return snapshots_in_range(self.store, self.target, 0, 1 << 62)


class Places:
    """The folders whose contents the pages show.

    Args:
        runs: Folder of runs and jobs.
        store: A store of snapshots, or a folder of stores.
        preparer: Computes missing sums; without it, a page waits for them.
    """

    def __init__(self, runs: Path, store: Path, preparer: Preparer | None = None) -> None:
        self.runs_folder = runs
        self.store_folder = store
        self.preparer = preparer
        self._opened: dict[Path, tuple[tuple[int, int], Run]] = {}
        self._stores: dict[Path, Store] = {}
        self._saved: ResultCache[Mapping[str, Any] | None] = ResultCache(SAVED_MOST)
        self._links = Links()

    def runs(self) -> list[Run]:
        """Return all runs, oldest first; unreadable folders, and those with a link that leads out, are skipped."""
        found = []
        for path in _folders(self.runs_folder):
            with contextlib.suppress(EvidenceError, OSError):
                found.append(self._open(path))
        return found

    def run(self, name: str) -> Run:
        """Return the run with this name.

        Raises:
            EvidenceError: There is no such run, it cannot be read, or a link in it leads out of the folder.
        """
        path = next((one for one in _folders(self.runs_folder) if one.name == name), None)
        if path is None:
            raise EvidenceError(f"there is no run {name!r:.80}", next_step="choose a run from the list of runs")
        return self._open(path)

    def jobs(self) -> list[Path]:
        """Return the job folders of moves, by name, without folders that have a link to a place outside of them."""
        return [one for one in self._jobs() if self._links.is_free(one)]

    def job(self, name: str) -> Path:
        """Return the job folder of the move with this name.

        Raises:
            EvidenceError: There is no move with that name, or a link in its folder leads out of it.
        """
        path = next((one for one in self._jobs() if one.name == name), None)
        if path is None:
            raise EvidenceError(f"there is no move {name!r:.80}", next_step="choose a move from the home page")
        self._links.check(path)
        return path

    def saved_pages(self) -> dict[str, Mapping[str, Any]]:
        """Return the models of pages saved as JSON files, by name, newest first; other files are skipped."""
        found = []
        for path in _files(self.runs_folder, SAVED):
            with contextlib.suppress(OSError, EvidenceError):
                at = path.lstat()
                model = self._saved.get(str(path), (at.st_mtime_ns, at.st_size), functools.partial(_model_in, path))
                if model is not None:
                    found.append((at.st_mtime_ns, path.name, model))
        return {name: model for _, name, model in sorted(found, key=lambda one: one[:2], reverse=True)}

    def saved_page(self, name: str) -> Mapping[str, Any]:
        """Return the model of the page saved under this name.

        Raises:
            EvidenceError: There is no saved page with that name.
        """
        known = self.saved_pages()
        if name not in known:
            raise EvidenceError(f"there is no saved page {name!r:.80}", next_step="choose a page from the home page")
        return known[name]

    def stores(self) -> dict[str, Store]:
        """Return the stores by name: the folder itself as "", or those inside it."""
        places = {"": self.store_folder} if _has_snapshots(self.store_folder) else {}
        if not places:  # a store has no stores in it, but tens of thousands of snapshots
            places = {
                p.name: p for p in _folders(self.store_folder) if p.name not in STORE_FOLDERS and _has_snapshots(p)
            }
        return {name: self._stores.setdefault(path, Store(path)) for name, path in places.items()}

    def servers(self) -> list[Server]:
        """Return all servers of all stores by name, except those in refused stores."""
        stores = ((name, one) for name, one in self.stores().items() if self._links.is_free(one.folder))
        return [Server(name, store, one, self.preparer) for name, store in stores for one in targets(store)]

    def refusals(self) -> list[EvidenceError]:
        """Return an error for each store, run or move that is not shown since a link in it leads out of its folder."""
        found = []
        for folder in (*(one.folder for one in self.stores().values()), *_folders(self.runs_folder)):
            try:
                self._links.check(folder)
            except EvidenceError as error:
                found.append(error)
        return found

    def server(self, name: str, target: str) -> Server:
        """Return the server with this store and target; without a target, the only server of the store.

        Raises:
            SnapshotError: There is no such server, or there are several and none was named.
            EvidenceError: A link in the store leads out of it.
        """
        every = [one for one in self.servers() if one.name == name and target in ("", one.target)]
        if not every and (store := self.stores().get(name)) is not None:
            self._links.check(store.folder)
        if len(every) != 1:
            found = "there is no such server" if not every else f"the store has {len(every)} servers"
            raise SnapshotError(f"{found}: {target or name!r:.80}", next_step="choose a server on the home page")
        return every[0]

    def _jobs(self) -> Iterator[Path]:
        return (one for one in _folders(self.runs_folder) if (one / INNER / "manifest.json").is_file())

    def _open(self, path: Path) -> Run:
        """Return a run, read again only if its manifest has changed.

        Raises:
            EvidenceError: The run cannot be read, or a link in it leads out of its folder.
        """
        self._links.check(path)
        found = (path / "manifest.json").stat()
        state = (found.st_mtime_ns, found.st_size)
        known = self._opened.get(path)
        if known is None or known[0] != state:
            known = self._opened[path] = (state, Run.open(path))
        return known[1]


def _folders(folder: Path) -> Iterator[Path]:
    """Yield the subfolders of a folder sorted by name, without links and hidden folders."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(one.name for one in entries if one.is_dir(follow_symlinks=False) and one.name[0] != ".")
    except OSError:
        return
    yield from (folder / name for name in names)


def _files(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files in a folder with a suffix, sorted by name, without links and hidden ones, up to `SAVED_MOST`."""
    try:
        with os.scandir(folder) as entries:
            fits = (one.name.endswith(suffix) and one.name[0] != "." and one for one in entries)
            names = sorted(one.name for one in fits if one and one.is_file(follow_symlinks=False))
    except OSError:
        return
    yield from (folder / name for name in names[-SAVED_MOST:])


def _model_in(path: Path) -> Mapping[str, Any] | None:
    """Return the page model in a JSON file, or None if it has none."""
    if path.lstat().st_size > LARGEST:
        return None
    found = read_json(path)
    return found if isinstance(found, dict) and found.get("schema") == 1 and found.get("kind") in BUILDERS else None


def _has_snapshots(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(one.name.isdigit() and one.is_dir(follow_symlinks=False) for one in entries)
    except OSError:
        return False
