"""The shapes that are fitted to a curve by weighted least squares.

A shape is a constant or a straight line, plus at most one further column that depends on a searched position: a bend, a
plateau, a step, or teeth. For each candidate position the fit is linear, so a search over all positions, for many data
vectors at once, is one matrix product: the part of the column that the constant and the line cannot explain, multiplied
by the residuals (Frisch and Waugh 1933).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Number of phases per period of a sawtooth, and factor between successive periods in the search.
PHASES = 16
PERIOD_STEP = 1.03
#: Smallest number of bins per tooth, and of teeth in the range.
BINS_PER_TOOTH_MIN = 4
TEETH_MIN = 2


def teeth(x: Floats, period: float, phase: float) -> Floats:
    """Return (x - phase) mod period: it rises from 0 to the period, then falls back."""
    return np.mod(x - phase, period)


def _bend(x: Floats, at: float, _: float) -> Floats:
    return np.maximum(x - at, 0.0)


def _plateau(x: Floats, at: float, _: float) -> Floats:
    return np.minimum(x, at)


def _step(x: Floats, at: float, _: float) -> Floats:
    return (x >= at).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Shape:
    """A family of curves.

    Attributes:
        name: Name of the shape.
        parameters: Number of parameters, searched positions included.
        slope: True if it has a straight line.
        column: The column that depends on a searched position; None if there is none.
        rising: True if the column may have only a positive coefficient.
        sawtooth: True if the shape has teeth.
    """

    name: str
    parameters: int
    slope: bool
    column: Callable[[Floats, float, float], Floats] | None = None
    rising: bool = False
    sawtooth: bool = False


SHAPES: tuple[Shape, ...] = (
    Shape("constant", 1, slope=False),
    Shape("straight line", 2, slope=True),
    Shape("rise to a plateau", 3, slope=False, column=_plateau),
    Shape("broken line", 4, slope=True, column=_bend),
    Shape("line with a step", 4, slope=True, column=_step),
    Shape("sawtooth", 4, slope=False, column=teeth, rising=True, sawtooth=True),
    Shape("sawtooth on a slope", 5, slope=True, column=teeth, rising=True, sawtooth=True),
)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A shape fitted to one data vector: y = intercept + slope x + height column(x, place)."""

    shape: Shape
    rss: float
    intercept: float
    slope: float
    height: float
    place: tuple[float, float]

    def values_at(self, x: Floats) -> Floats:
        """Return the fitted curve at x."""
        y = self.intercept + self.slope * x
        if self.shape.column is not None:
            y = y + self.height * self.shape.column(x, *self.place)
        return y


class Search:
    """All candidates of one shape over fixed x values and weights, ready for any data vectors."""

    def __init__(self, shape: Shape, x: Floats, weights: Floats, places: Floats) -> None:
        """Prepare the candidates; `places` has a row (place, phase) for each, or none if the shape has no column."""
        self.shape, self.x, self.places = shape, x, places
        self.root = np.sqrt(weights)
        base = np.vstack([np.ones_like(x), x]) if shape.slope else np.ones((1, x.size))
        self.basis, _ = np.linalg.qr((base * self.root).T)
        self.columns = np.zeros((0, x.size))
        if shape.column is not None and len(places):
            raw = np.array([shape.column(x, at, phase) for at, phase in places]) * self.root
            left = raw - (raw @ self.basis) @ self.basis.T
            norms = np.sqrt((left**2).sum(axis=1))
            # Leave out columns that the line already explains.
            good = norms > 1e-6 * np.sqrt((raw**2).sum(axis=1))
            self.places = places[good]
            self.columns = left[good] / norms[good, None]

    def least(self, whitened: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """Return the least residual sum of squares over the candidates for each data vector, and the best candidate.

        `whitened` has a column for each data vector, multiplied by the square roots of the weights. The best candidate
        is -1 if the shape has no candidate that adds anything to its constant or straight line.
        """
        left = whitened - self.basis @ (self.basis.T @ whitened)
        rss = (left**2).sum(axis=0)
        best = np.full(rss.shape, -1, dtype=np.intp)
        if len(self.columns):
            gain = self.columns @ left
            if self.shape.rising:
                np.maximum(gain, 0.0, out=gain)
            np.square(gain, out=gain)
            best = np.asarray(gain.argmax(axis=0))
            rss = rss - np.take_along_axis(gain, best[None, :], axis=0)[0]
        return np.maximum(rss, 0.0), best

    def fit(self, y: Floats) -> Fit:
        """Return the best candidate for one data vector, with its coefficients."""
        whitened = (y * self.root)[:, None]
        rss, best = self.least(whitened)
        place = (0.0, 0.0)
        columns = [np.ones_like(self.x)] + ([self.x] if self.shape.slope else [])
        with_column = self.shape.column is not None and best[0] >= 0
        if self.shape.column is not None and with_column:
            place = (float(self.places[best[0]][0]), float(self.places[best[0]][1]))
            columns.append(self.shape.column(self.x, *place))
        design = np.array(columns).T
        solved = np.linalg.lstsq(design * self.root[:, None], whitened[:, 0], rcond=None)[0]
        return Fit(
            shape=self.shape,
            rss=float(rss[0]),
            intercept=float(solved[0]),
            slope=float(solved[1]) if self.shape.slope else 0.0,
            height=float(solved[-1]) if with_column else 0.0,
            place=place,
        )


def places_for(shape: Shape, x: Floats, least_period: float) -> Floats:
    """Return the candidate positions of a shape over x (rising).

    These are the bins except the outermost three on each side for a bend, plateau or step; for teeth, periods in steps
    of 3 % with 16 phases each.
    """
    if shape.column is None:
        return np.zeros((0, 2))
    if not shape.sawtooth:
        inner = x[3:-3]
        return np.column_stack([inner, np.zeros_like(inner)])
    spacing = float(np.median(np.diff(x)))
    low = max(least_period, BINS_PER_TOOTH_MIN * spacing)
    high = float(x[-1] - x[0]) / TEETH_MIN
    if low >= high:
        return np.zeros((0, 2))
    steps = round(float(np.log(high / low) / np.log(PERIOD_STEP)))
    periods = np.geomspace(low, high, steps + 1)
    return periods_and_phases(periods, np.arange(PHASES) / PHASES)


def periods_and_phases(periods: Floats, phases: Floats) -> Floats:
    """Return all pairs of a period and a phase; `phases` are shares of the period."""
    return np.column_stack([np.repeat(periods, phases.size), np.outer(periods, phases % 1.0).ravel()])
