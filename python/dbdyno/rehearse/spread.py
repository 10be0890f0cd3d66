"""Spread of block times: a statement's estimate, moderated by the spread of the other statements.

A few blocks give only a rough estimate of their spread, for which Student's t compensates with wide intervals. Hundreds
of statements that were measured at the same time give a better one: the variance of each is moved towards a common one,
with a weight that is estimated from the variances themselves (Smyth, Statistical Applications in Genetics and Molecular
Biology 3, 2004, section 6.2). If the variances of the statements really differ, that weight is small.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEAST_SPREAD = 0.005
"""Minimum spread of the logarithms of blocks, so that no difference is significant only because a clock is coarse."""
_STATEMENTS_LEAST = 20
"""Minimum number of statements for a common variance."""
_FREEDOM_MOST = 50.0


@dataclass(frozen=True, slots=True)
class Prior:
    """Common variance of the logarithms of block ratios, and its degrees of freedom."""

    variance: float = 0.0
    freedom: float = 0.0


NO_PRIOR = Prior()


def common_prior(statements: Iterable[Sequence[float]]) -> Prior:
    """Return the common variance of statements, each given by the logarithms of its block ratios.

    >>> common_prior([[0.1, 0.2, 0.3]])
    Prior(variance=0.0, freedom=0.0)
    """
    known = [
        (max(statistics.variance(logs), LEAST_SPREAD**2), (len(logs) - 1) / 2) for logs in statements if len(logs) > 2
    ]
    if len(known) < _STATEMENTS_LEAST:
        return NO_PRIOR
    centred = [math.log(variance) - digamma(half) + math.log(half) for variance, half in known]
    excess = statistics.variance(centred) - statistics.fmean(trigamma(half) for _, half in known)
    freedom = _FREEDOM_MOST
    if excess > 0:
        freedom = min(2 * _inverse_trigamma(excess), _FREEDOM_MOST)
    mean = statistics.fmean(centred)
    return Prior(math.exp(mean + digamma(freedom / 2) - math.log(freedom / 2)), freedom)


def moderated_error(logs: Sequence[float], prior: Prior = NO_PRIOR) -> tuple[float, float, float]:
    """Return mean, standard error and degrees of freedom of the logarithms of block ratios."""
    own = len(logs) - 1
    freedom = own + prior.freedom
    variance = (own * statistics.variance(logs) + prior.freedom * prior.variance) / freedom
    return statistics.fmean(logs), max(math.sqrt(variance), LEAST_SPREAD) / math.sqrt(len(logs)), freedom


def digamma(x: float) -> float:
    """Return the digamma function of a positive number, by recurrence and its asymptotic series (DLMF 5.11.2)."""
    below = 0.0
    while x < 8:
        below += 1 / x
        x += 1
    square = 1 / x**2
    return math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240))) - below


def trigamma(x: float) -> float:
    """Return the derivative of the digamma function of a positive number (DLMF 5.15.8)."""
    below = 0.0
    while x < 8:
        below += 1 / x**2
        x += 1
    square = 1 / x**2
    return 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30))) + below


def _inverse_trigamma(value: float) -> float:
    """Return the positive number whose trigamma function has this value, by bisection of its logarithm."""
    low, high = -20.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(math.exp(middle)) > value else (low, middle)
    return math.exp(low)
