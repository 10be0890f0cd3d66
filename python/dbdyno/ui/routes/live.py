"""Changes as server-sent events, which update open pages in live mode.

While a page listens, the names and times of folders are checked every second, so an evidence part is noticed only when
it is complete. A page names the state from which it was made, so that no change between the making of the page and the
start of its stream is missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dbdyno.snapshot.reading.sums.index import FOLDER
from dbdyno.ui.places import Places
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import places_of

_NEWEST: ResultCache[list[Path]] = ResultCache(256)
EVERY_S = 1.0
QUIET_S = 15.0
"""Time without a change after which a comment is sent [s], so that a proxy keeps the connection open."""


async def events(request: Request) -> Response:
    """Return the stream of `change` events; each names what changed: `runs`, `stores`, `sums`."""
    return StreamingResponse(
        _changes(request, places_of(request)), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _changes(request: Request, places: Places) -> AsyncIterator[str]:
    known = await asyncio.to_thread(state, places)
    quiet = 0.0
    yield "retry: 2000\n\n"
    if (seen := request.query_params.get("seen")) and seen != digest(known):
        yield f"event: change\ndata: {' '.join(known)}\n\n"
    while not await request.is_disconnected():
        await asyncio.sleep(EVERY_S)
        now = await asyncio.to_thread(state, places)
        changed = [name for name in now if now[name] != known[name]]
        known, quiet = now, quiet + EVERY_S
        if changed:
            yield f"event: change\ndata: {' '.join(changed)}\n\n"
            quiet = 0.0
        elif quiet >= QUIET_S:
            yield ": nothing new\n\n"
            quiet = 0.0


def state(places: Places) -> dict[str, tuple[int, ...]]:
    """Return the state of runs and stores, which changes with every new part of a run and every new snapshot."""
    runs = _times(places.runs_folder, "*", "*/manifest.json", "*/blocks", "*/_dbdyno/chunks")
    stores = [path for store in places.stores().values() for path in (store.folder, *_newest(store.folder))]
    sums = [path for store in places.stores().values() for path in (store.folder / FOLDER).glob("*")]
    return {"runs": runs, "stores": _state_of(stores), "sums": _state_of(sums)}


def digest(known: dict[str, tuple[int, ...]]) -> str:
    """Return a short text that differs for different states."""
    return hashlib.blake2b(repr(known).encode(), digest_size=8).hexdigest()


def _newest(folder: Path) -> list[Path]:
    """Return the newest snapshot's manifest, which is written last; the folder is listed only if it has changed."""

    def listed() -> list[Path]:
        names = [one.name for one in folder.iterdir() if one.name.isdigit()]
        return [folder / max(names, key=int) / "manifest.json"] if names else []

    return _NEWEST.get(str(folder), folder.stat().st_mtime_ns, listed)


def _times(folder: Path, *patterns: str) -> tuple[int, ...]:
    return _state_of([folder, *(path for pattern in patterns for path in folder.glob(pattern))])


def _state_of(paths: list[Path]) -> tuple[int, ...]:
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            found.append(path.stat().st_mtime_ns)
    return tuple(sorted(found))
