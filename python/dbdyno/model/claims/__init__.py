"""The claims N1 to N15: published results that the model is checked against.

There is a file per claim, named after its content, with a small set of specifications. From the published result it
contains only the band, which is the accepted range; the model's own results are not written down. To add a claim, write
a file that ends in `CLAIM = Claim(...)` and add it to `FILES`. A claim states its basis (`base.BASES`).
"""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.model.claims.base import Claim, ClaimResult, combine_seeds, to_json
from dbdyno.model.claims.bench import Bench, ReplicationCache
from dbdyno.model.describe import SCHEMA

if TYPE_CHECKING:
    from dbdyno.hosts.workers import Workers

FILES = {
    "N1": "flash_times",
    "N2": "flash_log_cost",
    "N3": "race_winner",
    "N4": "redo_tail",
    "N5": "redo_on_flash",
    "N6": "redo_block_size",
    "N7": "commit_sawtooth",
    "N8": "write_back",
    "N9": "flash_cache_read",
    "N10": "keep_scan",
    "N11": "sas_disk",
    "N12": "group_commit",
    "N13": "starved_lgwr",
    "N14": "slower_member",
    "N15": "iorm_shares",
}
NAMES = tuple(FILES)
SEED = 2_011
GROWTH = 8
"""Factor by which the number of replications may grow for a claim whose verdict might change with the seed."""


def claims(only: Sequence[str] = ()) -> list[Claim]:
    """Return the claims named in `only`, or all claims if it is empty.

    Raises:
        ModelError: a name is not the name of a claim.
    """
    wanted = [name.strip().upper() for name in only if name.strip()] or list(NAMES)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise ModelError(
            f"there is no claim {unknown[0]!r}", where="--only", next_step=f"use one of {', '.join(NAMES)}"
        )
    return [importlib.import_module(f"dbdyno.model.claims.{FILES[name]}").CLAIM for name in wanted]


MAPS = ("N3", "N5", "N8", "N10", "N12")
"""The claims whose sources leave a parameter open; their files have a `MAP`."""


def measure_map(
    name: str,
    *,
    replications: int = 4,
    seed: int = SEED,
    on_progress: Callable[[str], None] = lambda _: None,
) -> JsonObject:
    """Measure the map of a claim (its quantity over the parameters that the source leaves open); return its page.

    Args:
        name: name of a claim in `MAPS`.
        replications: replications of each point.
        seed: seed of the model runs.
        on_progress: called with a text about the current work.

    Raises:
        ModelError: the claim has no map, or there are fewer than 2 replications.
    """
    from dbdyno.model.claims.map import draw_map

    _refuse_few(replications)
    if name.upper() not in MAPS:
        raise ModelError(
            f"there is no map of a claim named {name!r}", where="CLAIM", next_step=f"use one of {', '.join(MAPS)}"
        )
    module = importlib.import_module(f"dbdyno.model.claims.{FILES[name.upper()]}")
    done = itertools.count(1)
    bench = Bench(replications, seed, lambda: on_progress(f"{name.upper()}: replication {next(done)}"))
    return draw_map(module.CLAIM.name, module.CLAIM.title, module.CLAIM.source, module.MAP, bench)


def measure_claims(
    only: Sequence[str] = (),
    *,
    replications: int = 8,
    limit: int | None = None,
    seed: int = SEED,
    seeds: int = 1,
    on_progress: Callable[[str], None] = lambda _: None,
    workers: Workers | None = None,
) -> JsonObject:
    """Measure claims and return the page about them.

    A claim that cannot be measured gets an `error`; the others are measured anyway.

    Args:
        only: names of claims; all if empty.
        replications: replications of each claim.
        limit: maximum replications of a claim whose verdict might change with the seed; eight times `replications` by
            default.
        seed: seed of the model runs.
        seeds: number of consecutive seeds, starting with `seed`, with which each claim is measured; the figures are
            from the first seed.
        on_progress: called with a text about the current work.
        workers: workers that run the replications; None to use only this machine.

    Raises:
        TargetError: the workers or their scheduler are gone.
        ModelError: a name is not the name of a claim, or there are fewer than 2 replications.
    """
    _refuse_few(replications)
    limit = max(GROWTH * replications if limit is None else limit, replications)
    wanted = claims(only)
    found = []
    for at, claim in enumerate(wanted, 1):
        by_seed = {}
        for own in range(seed, seed + seeds):
            place = f"{claim.name} ({at} of {len(wanted)})" + (f", seed {own}: " if seeds > 1 else ": ")
            by_seed[own] = _held(claim, (replications, limit), own, partial(_placed, on_progress, place), workers)
        found.append(combine_seeds(by_seed))
    holding = sum(entry["verdict"] == "holds" for entry in found)
    drawn = f"seed {seed}" if seeds == 1 else f"each at the seeds {seed} to {seed + seeds - 1}"
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "claims",
        "title": f"{holding} of {len(found)} claims hold" + (f" at each of {seeds} seeds" if seeds > 1 else ""),
        "facts": f"{replications} to {limit} replications, more where the verdict might change with the"
        f" dice, {drawn}; 95 % t intervals over them",
        "replications": replications,
        "seed": seed,
        "seeds": seeds,
        "claims": found,
    }


def _placed(on_progress: Callable[[str], None], place: str, words: str) -> None:
    on_progress(place + words)


def _held(
    claim: Claim,
    replications: tuple[int, int],
    seed: int,
    on_progress: Callable[[str], None],
    workers: Workers | None,
) -> ClaimResult:
    """Measure a claim, doubling the replications until its verdict is steady or the maximum is reached."""
    done = 0
    begun = time.monotonic()
    number, most = replications

    def one() -> None:
        nonlocal done
        done += 1
        on_progress(f"{done} runs, {number} of up to {most} replications, {time.monotonic() - begun:.0f} s")

    on_progress(claim.title)
    with ReplicationCache() as kept:
        while True:
            try:
                entry = to_json(claim, claim.measure(Bench(number, seed, one, kept, workers)))
            except ModelError as error:
                entry = to_json(claim, [])
                entry["error"] = str(error)
                entry["notes"] = [f"could not be measured: {error}", *entry["notes"]]
            if entry["steady"] or number >= most:
                return {**entry, "replications": number, "seconds": round(time.monotonic() - begun, 2)}
            number = min(2 * number, most)


def _refuse_few(replications: int) -> None:
    """Raise a `ModelError` if there are fewer than 2 replications."""
    if replications < 2:
        said = "expected 2 replications or more, which an interval needs"
        raise ModelError(said, where="--replications", next_step="write for example --replications 10")
