"""What chance alone could do: the least p that so few blocks can give, and so the least blocks.

Without a true difference the sign of a block's log ratio is a coin toss, because the order of the
arms in the block was drawn by lot. All n blocks on one side is the most extreme result there is; it
comes about with probability 2 (1/2)^n, either side counted. A test that rests on the lot alone can
therefore never reach a p below 2^(1 - n), and a level is out of its reach while

    2^(1 - n) > 1 - level,   that is   n < 1 + log2(1 / (1 - level))        (6 blocks at 95 %)

Student's t claims more from fewer blocks, but only on the word of the normal distribution, which
two or three blocks can neither bear out nor deny. Below that number a verdict is provisional.

Of two sets that are not paired (traces, recordings) the labels are what the lot could have
exchanged: C(n + m, n) ways, so the least p is 2 / C(n + m, n) (4 against 4, or 2 against 8).
"""

from __future__ import annotations

import math


def least_p_paired(blocks: float) -> float:
    """The least two-sided p of `blocks` signs; 1 below one block."""
    return min(1.0, math.ldexp(1.0, 1 - math.floor(blocks + 1e-9)))


def least_p_unpaired(base: float, other: float) -> float:
    """The least two-sided p of exchanging labels between two sets; 1 where a set is empty."""
    n, m = math.floor(base + 1e-9), math.floor(other + 1e-9)
    return min(1.0, 2 / math.comb(n + m, n)) if min(n, m) > 0 else 1.0


def blocks_least(level: float) -> int:
    """The least number of blocks with which a verdict at `level` is more than provisional."""
    return math.ceil(1.0 + math.log2(1.0 / (1.0 - level)) - 1e-9)


def least_in_each(level: float) -> int:
    """The least number of blocks in each of two sets that are not paired: 4 at 95 %."""
    return next(n for n in range(1, 100) if in_reach(least_p_unpaired(n, n), level))


def in_reach(least_p: float, level: float) -> bool:
    """Whether chance alone could be ruled out at `level`."""
    return least_p <= (1.0 - level) * (1 + 1e-9)
