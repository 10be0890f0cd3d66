"""Sobol indices of a machine's parameters: their shares of the variance of an answer.

A parameter's *first* index is the share of the variance that it explains alone; its *total* index also contains the
share that it explains together with others. Estimators: Saltelli et al. 2010 (first) and Jansen 1999 (total), with two
independent samples of the unit cube, and copies of the first sample in which one parameter at a time comes from the
second. This takes samples x (parameters + 2) runs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Design:
    """Points of the unit cube: two samples, and copies of the first, each with one parameter from the second."""

    first: list[list[float]]
    second: list[list[float]]
    exchanged: list[list[list[float]]]

    @property
    def places(self) -> list[list[float]]:
        """Return all points in order."""
        return [*self.first, *self.second, *(place for own in self.exchanged for place in own)]


def design(count: int, samples: int, seed: int) -> Design:
    """Return the points at which a model with `count` parameters has to be run."""
    dice = random.Random(f"sobol {seed}")
    first, second = ([[dice.random() for _ in range(count)] for _ in range(samples)] for _ in range(2))
    exchanged = [[[*a[:at], b[at], *a[at + 1 :]] for a, b in zip(first, second, strict=True)] for at in range(count)]
    return Design(first, second, exchanged)


def indices(samples: int, answers: Sequence[float]) -> list[tuple[float, float]]:
    """Return first-order and total index of each parameter from the model's answers in the order of `Design.places`.

    If the answers have no variance, both indices are 0.
    """
    first, second = answers[:samples], answers[samples : 2 * samples]
    both = [*first, *second]
    mean = sum(both) / len(both)
    variance = sum((answer - mean) ** 2 for answer in both) / len(both)
    found = []
    for begin in range(2 * samples, len(answers), samples):
        own = answers[begin : begin + samples]
        if not variance:
            found.append((0.0, 0.0))
            continue
        alone = sum((b - mean) * (ab - a) for a, b, ab in zip(first, second, own, strict=True)) / samples
        total = sum((a - ab) ** 2 for a, ab in zip(first, own, strict=True)) / (2 * samples)
        found.append((alone / variance, total / variance))
    return found
