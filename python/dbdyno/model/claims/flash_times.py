"""N1: the times that flash takes to read, program and erase; they are inputs of the model and shown as such."""

from __future__ import annotations

from dbdyno.model.claims.base import FITTED, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Bench, value_of

TIMES = (("read_us", 25), ("program_us", 250), ("erase_us", 2_000))


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Return the parameters of the flash modules of an X2 cell."""
    machine = bench.machine("exadata-x2")
    return [
        ClaimQuantity(key.removesuffix("_us"), [value_of(machine, f"cells.flash.{key}")], us, us, "us")
        for key, us in TIMES
    ]


CLAIM = Claim(
    "N1",
    "Flash reads a page in 25 us, programs it in 250 us, erases a block in 2,000 us",
    "Harrison 2011 (E15), primer on flash",
    FITTED,
    measure,
    ("These are inputs: they prove nothing, but everything below depends on them.",),
)
