"""The claims N1 to N15: what was published, and what the model gives now.

A file per claim, named by what it claims, a small set of specifications each; no number of the
answer stands in any of them but the band. To add one: write a file that ends in
`CLAIM = Claim(...)`, and name it in `FILES`. It says on what it stands (`base.BASES`).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dbdyno.base.errors import ModelError
from dbdyno.model.claims.base import Claim, Told, to_json
from dbdyno.model.claims.bench import Bench, Kept
from dbdyno.model.describe import SCHEMA

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
"""A claim whose verdict might change with the dice is measured with up to so many times the replications."""


def claims(only: Sequence[str] = ()) -> list[Claim]:
    """The claims asked for, all without `only`; raises `ModelError` for a name that is none."""
    wanted = [name.strip().upper() for name in only if name.strip()] or list(NAMES)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise ModelError(f"no claim {unknown[0]!r}", where="--only", next_step=f"there are {', '.join(NAMES)}")
    return [importlib.import_module(f"dbdyno.model.claims.{FILES[name]}").CLAIM for name in wanted]


def hold(
    only: Sequence[str] = (),
    *,
    replications: int = 8,
    most: int | None = None,
    seed: int = SEED,
    on_progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measures claims and returns the page about them; one that cannot be measured has an `error` and costs no other.
    `most` are the replications of a claim whose verdict might change with the dice, eight times as many unless said.
    `on_progress` hears what is under way.

    Raises:
        ModelError: no such claim, or fewer than 2 replications.
    """
    if replications < 2:
        raise ModelError("an interval needs 2 replications or more", where="--replications")
    most = max(GROWTH * replications if most is None else most, replications)
    wanted = claims(only)
    found = []
    for at, claim in enumerate(wanted, 1):
        place = f"{claim.name} ({at} of {len(wanted)}): "
        found.append(_held(claim, (replications, most), seed, partial(_placed, on_progress, place)))
    holding = sum(entry["verdict"] == "holds" for entry in found)
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "claims",
        "title": f"{holding} of {len(found)} claims hold",
        "facts": f"{replications} to {most} replications, more where the verdict might change with the"
        f" dice, seed {seed}; 95 % t intervals over them",
        "replications": replications,
        "seed": seed,
        "claims": found,
    }


def _placed(on_progress: Callable[[str], None], place: str, words: str) -> None:
    on_progress(place + words)


def _held(claim: Claim, replications: tuple[int, int], seed: int, on_progress: Callable[[str], None]) -> Told:
    """A claim measured with as many replications as its verdict needs to be steady, within reason."""
    done = 0
    begun = time.monotonic()
    number, most = replications

    def one() -> None:
        nonlocal done
        done += 1
        on_progress(f"{done} runs, {number} of up to {most} replications, {time.monotonic() - begun:.0f} s")

    on_progress(claim.title)
    with Kept() as kept:
        while True:
            try:
                entry = to_json(claim, claim.measure(Bench(number, seed, one, kept)))
            except ModelError as error:
                entry = to_json(claim, [])
                entry["error"] = str(error)
                entry["notes"] = [f"could not be measured: {error}", *entry["notes"]]
            if entry["steady"] or number >= most:
                return {**entry, "replications": number, "seconds": round(time.monotonic() - begun, 2)}
            number = min(2 * number, most)
