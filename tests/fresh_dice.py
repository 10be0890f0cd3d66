"""Random numbers for tests that differ in each run; the seed is printed, so that a failed test can be repeated."""

from __future__ import annotations

import random


def fresh_dice() -> random.Random:
    """Return random numbers and print their seed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)
