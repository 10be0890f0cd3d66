"""The least p that a number of blocks can reach by chance alone, and the least number of blocks for a verdict.

Without a true difference the sign of a block's log ratio is a coin toss, because the order of the arms in the block was
randomised. The most extreme result is that all n blocks have the same sign; its two-sided probability is 2 (1/2)^n. A
test that relies on the randomisation alone can therefore never reach a p below 2^(1 - n), and a level cannot be reached
while

    2^(1 - n) > 1 - level,   that is   n < 1 + log2(1 / (1 - level))        (6 blocks at 95 %)

Student's t reaches smaller p with fewer blocks, but only by assuming a normal distribution, which two or three blocks
can neither confirm nor refute. Below that number a verdict is provisional.

For two sets that are not paired (traces, recordings) randomisation would exchange the labels: there are C(n + m, n)
ways, so the least p is 2 / C(n + m, n). At 95 % this takes 4 against 4, or 2 against 8.
"""

from __future__ import annotations

import math

PROMISED_MOST = 1_000
"""Largest number of blocks that is promised to decide; beyond it, less noise helps more than more blocks."""


def least_p_paired(blocks: float) -> float:
    """Return the least two-sided p that the signs of `blocks` paired blocks can reach; 1 below one block."""
    return min(1.0, math.ldexp(1.0, 1 - math.floor(blocks + 1e-9)))


def least_p_unpaired(base: float, other: float) -> float:
    """Return the least two-sided p that exchanging labels between two sets can reach; 1 if a set is empty."""
    n, m = math.floor(base + 1e-9), math.floor(other + 1e-9)
    return min(1.0, 2 / math.comb(n + m, n)) if min(n, m) > 0 else 1.0


def least_paired_blocks(level: float) -> int:
    """Return the least number of paired blocks with which a verdict at `level` is more than provisional."""
    return math.ceil(1.0 + math.log2(1.0 / (1.0 - level)) - 1e-9)


def least_unpaired_blocks(level: float) -> int:
    """Return the least number of blocks in each of two sets that are not paired, such as 4 at 95 %."""
    return next(n for n in range(1, 100) if is_reachable(least_p_unpaired(n, n), level))


def is_reachable(least_p: float, level: float) -> bool:
    """Return True if a test whose least possible p is `least_p` can rule out chance alone at `level`."""
    return least_p <= (1.0 - level) * (1 + 1e-9)
