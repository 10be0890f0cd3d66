"""Shape of the commit time as a function of redo size: constant, straight line, broken line, or sawtooth.

The points are reduced to bins of redo size: each block's level is divided out (a slow minute must not look like a slow
size), each bin becomes the median of its points, and the shapes of `shapes` are fitted to the bins. A sawtooth is
reported only if all of these hold:

1. its BIC is lower than that of every shape without teeth by at least 6 ("strong", Kass and Raftery 1995);
2. the gain is larger than what the search for a period finds in noise: the residuals of the best shape without teeth
   are permuted over the bins, and the whole search is repeated on each permutation (p at most 0.01), because trying a
   hundred periods is a hundred tests on the same data;
3. it predicts blocks that were left out of the fit better than the best shape without teeth does (five folds of whole
   blocks);
4. its teeth are at least 5 % of the typical commit time high;
5. its falls are visible individually: at least two of them, and two thirds of those within the range. A single step is
   not a sawtooth.

Limits: periods from 64 KiB (and four bins) to half the range of redo sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.base.errors import StatsError
from dbdyno.base.notebook import facts_table
from dbdyno.stats.distributions import t_quantile
from dbdyno.stats.shapes import PERIOD_STEP, PHASES, SHAPES, Fit, Floats, Search, periods_and_phases, places_for
from dbdyno.stats.wording import duration, percent, size

BINS_MAX = 96
BINS_MIN = 12
BLOCKS_MIN = 4
POINTS_MIN = 120
LEAST_PERIOD = 64 * 1024.0
BIC_MARGIN = 6.0
P_MAX = 0.01
AMPLITUDE_MIN = 0.05
FOLDS = 5
TOO_NARROW = "the redo sizes are too close together to search for teeth of 64 KiB or more"

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted shape.

    Attributes:
        name: Name of the shape.
        parameters: Number of parameters.
        bic: BIC over the bins.
        cv_error: Mean weighted squared error on left-out blocks, relative to the commit time.
        chosen: True for the shape that describes the points best.
    """

    name: str
    parameters: int
    bic: float
    cv_error: float
    chosen: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """Points of about the same redo size.

    Attributes:
        redo_bytes: Median redo size [bytes].
        median_ns: Median time [ns].
        low_ns: Lower end of the 95 % interval of the median over the blocks; NaN with fewer than two blocks.
        high_ns: Upper end of that interval; NaN with fewer than two blocks.
        n: Number of points.
    """

    redo_bytes: float
    median_ns: float
    low_ns: float
    high_ns: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class CurveFit:
    """Result of the fit: the chosen shape and whether it is a sawtooth.

    - `found`: True if there is a sawtooth (see the module docstring). Then `period_bytes`, `amplitude_ns` (height of a
      tooth) and `phase_bytes` (the first fall is at phase + period) are numbers, else None.
    - `p`: share of permuted data sets in which the search finds a gain as large.
    - `fit_redo_bytes`, `fit_elapsed_ns`: line of the chosen model, for drawing.
    - `reasons`: reasons against a sawtooth; empty if one was found.
    """

    found: bool
    period_bytes: float | None
    phase_bytes: float | None
    amplitude_ns: float | None
    p: float
    models: tuple[Model, ...]
    bins: tuple[Bin, ...]
    fit_redo_bytes: tuple[float, ...]
    fit_elapsed_ns: tuple[float, ...]
    reasons: tuple[str, ...]
    sentence: str

    def _repr_html_(self) -> str:
        facts = {"period (bytes)": self.period_bytes, "amplitude (ns)": self.amplitude_ns, "p": self.p}
        return facts_table(self.sentence, facts)


@dataclass(frozen=True, slots=True, eq=False)
class _Binned:
    """Points with the number of their bin, and their time with the level of their block divided out."""

    bin_of: NDArray[np.intp]
    block: Integers
    time: Floats
    x: Floats
    count: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Gains:
    """Gain of the best sawtooth over the best other shape: in BIC, as p of the search, in cross-validation error."""

    bic: float
    p: float
    cross: float


def fit_curve(
    redo_bytes: ArrayLike,
    elapsed_ns: ArrayLike,
    block: ArrayLike,
    *,
    permutations: int = 499,
    seed: int = 0,
) -> CurveFit:
    """Fit all shapes to pairs of redo size [bytes] and commit time [ns] with their block number.

    Pairs with a negative redo size (unknown) or a time of zero or less are left out.

    Raises:
        StatsError: The lengths differ, or there are fewer than 120 pairs, 4 blocks, or 12 distinct sizes.
    """
    binned = _bin(*_points(redo_bytes, elapsed_ns, block))
    everything = np.ones(binned.time.size, dtype=bool)
    y = _medians(binned, everything)
    weights = _weights(binned.count, y)
    places = [(shape, places_for(shape, binned.x, LEAST_PERIOD)) for shape in SHAPES]
    searches = [
        Search(shape, binned.x, weights, where) for shape, where in places if shape.column is None or len(where)
    ]
    fits = [search.fit(y) for search in searches]
    floor = 1e-12 * float((weights * y**2).sum())
    bics = [_bic(fit, y.size, floor) for fit in fits]
    errors = _cross_validated(binned, searches, weights, y)
    plain = min((i for i, f in enumerate(fits) if not f.shape.sawtooth), key=bics.__getitem__)
    toothed = [i for i, f in enumerate(fits) if f.shape.sawtooth]
    saw = min(toothed, key=bics.__getitem__, default=plain)
    p = 1.0
    if toothed:
        p = _permutation_p(searches, fits[plain], y, permutations=permutations, seed=seed)
    refined = _refine(fits[saw], binned.x, weights, y)
    gains = _Gains(bics[plain] - bics[saw], p, errors[plain] - errors[saw])
    reasons = _reasons_against(gains, refined, binned.x, y) if toothed else [TOO_NARROW]
    found = not reasons
    chosen = saw if found else plain
    line = refined if found else fits[chosen]
    span = np.linspace(binned.x[0], binned.x[-1], 401)
    return CurveFit(
        found=found,
        period_bytes=refined.place[0] if found else None,
        phase_bytes=refined.place[1] if found else None,
        amplitude_ns=refined.height * refined.place[0] if found else None,
        p=p,
        models=tuple(
            Model(f.shape.name, f.shape.parameters, bics[i], errors[i], i == chosen) for i, f in enumerate(fits)
        ),
        bins=_bins(binned, y),
        fit_redo_bytes=tuple(map(float, span)),
        fit_elapsed_ns=tuple(map(float, line.values_at(span))),
        reasons=tuple(reasons),
        sentence=_sentence(line, found, p, binned.x),
    )


def _points(redo_bytes: ArrayLike, elapsed_ns: ArrayLike, block: ArrayLike) -> tuple[Floats, Floats, Integers]:
    x = np.asarray(redo_bytes, dtype=np.float64)
    y = np.asarray(elapsed_ns, dtype=np.float64)
    b = np.asarray(block, dtype=np.int64)
    if not x.shape == y.shape == b.shape or x.ndim != 1:
        raise StatsError(
            f"the columns have different lengths: {x.size} redo sizes, {y.size} times, {b.size} blocks",
            next_step="give one redo size, one time and one block for each commit",
        )
    good = np.isfinite(x) & (x >= 0) & np.isfinite(y) & (y > 0)
    x, y, b = x[good], y[good], b[good]
    blocks = np.unique(b).size
    if x.size < POINTS_MIN or blocks < BLOCKS_MIN:
        raise StatsError(
            f"{x.size} commits in {blocks} blocks are too few for a curve",
            next_step=f"run at least {BLOCKS_MIN} blocks and {POINTS_MIN} commits (--blocks)",
        )
    return x, y, b


def _bin(x: Floats, y: Floats, block: Integers) -> _Binned:
    """Cut the redo sizes into equal-width bins, and divide out the level of each block.

    Bins with fewer than 3 points are left out with their points. The level of a block is the median of its times, each
    divided by the median of its bin.

    Raises:
        StatsError: Fewer than 12 bins are left.
    """
    wanted = min(BINS_MAX, max(2 * BINS_MIN, x.size // 8))
    low, high = float(x.min()), float(x.max())
    number = np.minimum(((x - low) / max(high - low, 1.0) * wanted).astype(np.intp), wanted - 1)
    kept = (np.bincount(number, minlength=wanted) >= 3)[number]
    _, bin_of = np.unique(number[kept], return_inverse=True)
    bin_of = bin_of.astype(np.intp)
    x, y, block = x[kept], y[kept], block[kept]
    count = np.bincount(bin_of)
    if count.size < BINS_MIN:
        raise StatsError(
            f"{count.size} different redo sizes are too few for a curve",
            next_step=f"spread the redo sizes over at least {BINS_MIN} levels",
        )
    time = y.copy()
    for _ in range(2):
        against = time / _group_medians(bin_of, time, count.size)[bin_of]
        _, block_of = np.unique(block, return_inverse=True)
        level = _group_medians(block_of.astype(np.intp), against, int(block_of.max()) + 1)
        time = time / level[block_of]
    return _Binned(bin_of, block, time, _group_medians(bin_of, x, count.size), count)


def _group_medians(group: NDArray[np.intp], values: Floats, groups: int) -> Floats:
    """Return the median of the values of each group; NaN for a group without values."""
    order = np.lexsort((values, group))
    ordered = values[order]
    count = np.bincount(group, minlength=groups)
    start = np.cumsum(count) - count
    last = max(values.size - 1, 0)
    below = ordered[np.minimum(start + np.maximum(count - 1, 0) // 2, last)]
    above = ordered[np.minimum(start + count // 2, last)]
    return np.where(count > 0, (below + above) / 2, np.nan)


def _medians(binned: _Binned, points: NDArray[np.bool_]) -> Floats:
    return _group_medians(binned.bin_of[points], binned.time[points], binned.count.size)


def _weights(count: NDArray[np.int64], y: Floats) -> Floats:
    """Return weights of the bins: the number of points divided by the squared time.

    The noise of a commit grows with its length, and that of a median falls with the number of points. The time is a
    running median of nine bins, so that a bin that is low by chance does not weigh more. No bin weighs more than four
    typical ones.
    """
    padded = np.pad(y, 4, mode="reflect")
    level = np.median(np.lib.stride_tricks.sliding_window_view(padded, 9), axis=1)
    return np.asarray(np.minimum(count, 4 * np.median(count)) / level**2, dtype=np.float64)


def _bic(fit: Fit, bins: int, floor: float) -> float:
    """Return n log(RSS / n) + k log n (Schwarz 1978), over the bins."""
    return bins * math.log(max(fit.rss, floor) / bins) + fit.shape.parameters * math.log(bins)


def _cross_validated(binned: _Binned, searches: list[Search], weights: Floats, y: Floats) -> list[float]:
    """Return the mean weighted squared error of each shape on whole blocks that were left out of the fit in turn."""
    blocks = np.unique(binned.block)
    errors = np.zeros(len(searches))
    share = weights / weights.sum()
    folds = min(FOLDS, blocks.size)
    for fold in range(folds):
        out = np.isin(binned.block, blocks[fold::folds])
        train, test = _medians(binned, ~out), _medians(binned, out)
        train = np.where(np.isnan(train), y, train)
        seen = ~np.isnan(test)
        for i, search in enumerate(searches):
            apart = (test - search.fit(train).values_at(binned.x))[seen] / y[seen]
            errors[i] += float((share[seen] * apart**2).sum() / share[seen].sum())
    return [float(error) / folds for error in errors]


def _permutation_p(searches: list[Search], plain: Fit, y: Floats, *, permutations: int, seed: int) -> float:
    """Return the share of data sets without teeth in which the search for a sawtooth gains as much.

    The data sets are the curve of the best shape without teeth plus its weighted residuals in random order. The gain is
    the log ratio of the least residual sums of squares without and with teeth.
    """
    root = searches[0].root
    curve = plain.values_at(searches[0].x)
    residuals = (y - curve) * root
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(y.size), (permutations, 1)), axis=1)
    data = np.vstack([residuals, residuals[order]]).T + (curve * root)[:, None]
    tiny = 1e-12 * float((data[:, 0] ** 2).sum())
    least = {True: np.full(permutations + 1, np.inf), False: np.full(permutations + 1, np.inf)}
    for search in searches:
        kind = search.shape.sawtooth
        least[kind] = np.minimum(least[kind], search.least(data)[0])
    gain = np.log((least[False] + tiny) / (least[True] + tiny))
    return float(1 + (gain[1:] >= gain[0]).sum()) / (permutations + 1)


def _refine(fit: Fit, x: Floats, weights: Floats, y: Floats) -> Fit:
    """Return the best sawtooth near the one found on the coarse grid."""
    period, phase = fit.place
    if period <= 0:
        return fit
    reach = np.linspace(1 / PERIOD_STEP, PERIOD_STEP, 31) * period
    shares = phase / period + np.linspace(-1, 1, 17) / PHASES
    return Search(fit.shape, x, weights, periods_and_phases(reach, shares)).fit(y)


def _falls(fit: Fit, x: Floats, y: Floats) -> tuple[int, int]:
    """Return the number of the sawtooth's falls with bins on both sides, and how many of these falls are visible.

    A fall is the drop from one tooth to the next. It is visible if, without the linear trend, the mean of the last
    third of the tooth exceeds that of the first third of the next by at least a quarter of the height of a tooth.
    """
    period, phase = fit.place
    rest = y - fit.intercept - fit.slope * x
    inside = seen = 0
    first = math.ceil((x[0] - phase) / period)
    for k in range(first, first + int((x[-1] - x[0]) / period) + 2):
        fall = phase + k * period
        before = rest[(x >= fall - period / 3) & (x < fall)]
        after = rest[(x >= fall) & (x < fall + period / 3)]
        if before.size and after.size:
            inside += 1
            seen += bool(before.mean() - after.mean() >= fit.height * period / 4)
    return inside, seen


def _reasons_against(gains: _Gains, saw: Fit, x: Floats, y: Floats) -> list[str]:
    """Return the reasons against a sawtooth, by the rules in the module docstring in their order."""
    if saw.height <= 0.0:
        return ["no period has a rise and a fall"]
    reasons = []
    if gains.bic < BIC_MARGIN:
        reasons.append("a curve without teeth fits the points equally well")
    if gains.p > P_MAX:
        reasons.append(f"a search over all periods finds as strong a pattern in noise (p = {gains.p:.3f})")
    if gains.cross <= 0.0:
        reasons.append("it does not predict blocks outside its fit")
    height = saw.height * saw.place[0] / float(np.median(y))
    if height < AMPLITUDE_MIN:
        reasons.append(f"its teeth are only {percent(height)} % of the commit time")
    inside, seen = _falls(saw, x, y)
    if seen < 2 or seen * 3 < inside * 2:
        reasons.append(f"only {seen} of its {inside} falls are visible")
    if saw.height + saw.slope < saw.height / 2:
        reasons.append("the time does not rise between its falls")
    return reasons


def _bins(binned: _Binned, y: Floats) -> tuple[Bin, ...]:
    """Return the bins for drawing; the interval is Student's t on the logarithms of the blocks' medians."""
    blocks, block_of = np.unique(binned.block, return_inverse=True)
    cell = binned.bin_of * blocks.size + block_of
    medians = _group_medians(cell.astype(np.intp), binned.time, y.size * blocks.size)
    table = np.log(medians).reshape(y.size, blocks.size)
    made = []
    for i, row in enumerate(table):
        known = row[~np.isnan(row)]
        half = math.nan
        if known.size > 1:
            half = t_quantile(known.size - 1, 0.975) * known.std(ddof=1)
            half /= math.sqrt(known.size)
        made.append(
            Bin(
                redo_bytes=float(binned.x[i]),
                median_ns=float(y[i]),
                low_ns=float(y[i] * math.exp(-half)),
                high_ns=float(y[i] * math.exp(half)),
                n=int(binned.count[i]),
            )
        )
    return tuple(made)


def _sentence(line: Fit, found: bool, p: float, x: Floats) -> str:
    """Describe the chosen curve in a sentence."""
    mib = 1024.0 * 1024.0
    place = size(line.place[0])
    if found:
        height = duration(line.height * line.place[0])
        return (
            f"The commit time rises with the redo written and falls back every {place}: a sawtooth "
            f"{height} high (p = {p:.3f} against curves without teeth)."
        )
    start = duration(float(line.values_at(x[:1])[0]))
    per_mib = duration(line.slope * mib)
    shape = line.shape.name
    if shape == "constant":
        what = f"the commit time does not depend on the redo written ({start})"
    elif shape == "straight line":
        what = f"the commit time is a straight line, {start} and {per_mib} per MiB of redo"
    elif shape == "rise to a plateau":
        per_mib = duration(line.height * mib)
        what = f"the commit time changes by {per_mib} per MiB of redo up to {place}, then stays constant"
    elif shape == "broken line":
        beyond = duration((line.slope + line.height) * mib)
        what = f"the commit time changes by {per_mib} per MiB of redo up to {place} and by {beyond} per MiB beyond"
    else:
        what = (
            f"the commit time changes by {per_mib} per MiB of redo, with one step of {duration(line.height)} at {place}"
        )
    return f"No sawtooth: {what}."
