"""Statistics on evidence: pure functions from numbers to estimates, intervals and verdicts.

The unit of inference is the block. `compare_blocks` turns one value per block and arm into an estimate with its
interval, and `decide` turns the comparisons of a run into a verdict. The classical tests over all waits are here too;
they assume independence, and say so. Further functions describe any column (`describe`) and compute correlation,
regression and scalability. Nothing here depends on an engine.

    >>> from dbdyno.stats import compare_blocks
    >>> base = [100.0, 103.0, 98.0, 101.0, 99.0, 104.0]
    >>> other = [106.2, 110.0, 104.9, 107.5, 105.0, 111.3]
    >>> compare_blocks(base, other, higher_is_better=False).words
    '6.6 % slower (95 % CI 6.2 to 7.0 %)'
"""

from __future__ import annotations

from dbdyno.stats.decide import ArmVerdict, Verdict, benjamini_hochberg, decide

TYPE_CHECKING = False
_HOME = {
    "blocks": "compare_blocks compare_metric",
    "classical": "ClassicalTest kolmogorov_smirnov mann_whitney welch",
    "comparison": "BlockComparison",
    "correlation": "Correlation correlate kendall pearson prob_r prob_r_log10 spearman",
    "curve": "CurveFit fit_curve",
    "description": "Description describe",
    "gates": "Gate",
    "group_tests": "compare_groups compare_in_blocks welch_from_summary",
    "metrics": "METRICS Metric block_values block_values_of default_headline metric_named",
    "noise": "NoiseFloor noise_floor",
    "power": "blocks_needed power_of smallest_visible",
    "quantiles": "QuantileInterval quantile quantile_interval is_supported",
    "regression": "LinearFit lm",
    "samples": "Counts Moments autocorrelation counts_of moments",
    "scalability": "UslFit usl",
}
"""Public names by their module; each is imported when it is first used, because most modules need numpy."""
_MODULES = {name: module for module, names in _HOME.items() for name in names.split()}

if TYPE_CHECKING:
    from dbdyno.stats.blocks import compare_blocks, compare_metric
    from dbdyno.stats.classical import ClassicalTest, kolmogorov_smirnov, mann_whitney, welch
    from dbdyno.stats.comparison import BlockComparison
    from dbdyno.stats.correlation import (
        Correlation,
        correlate,
        kendall,
        pearson,
        prob_r,
        prob_r_log10,
        spearman,
    )
    from dbdyno.stats.curve import CurveFit, fit_curve
    from dbdyno.stats.description import Description, describe
    from dbdyno.stats.gates import Gate
    from dbdyno.stats.group_tests import compare_groups, compare_in_blocks, welch_from_summary
    from dbdyno.stats.metrics import (
        METRICS,
        Metric,
        block_values,
        block_values_of,
        default_headline,
        metric_named,
    )
    from dbdyno.stats.noise import NoiseFloor, noise_floor
    from dbdyno.stats.power import blocks_needed, power_of, smallest_visible
    from dbdyno.stats.quantiles import QuantileInterval, is_supported, quantile, quantile_interval
    from dbdyno.stats.regression import LinearFit, lm
    from dbdyno.stats.samples import Counts, Moments, autocorrelation, counts_of, moments
    from dbdyno.stats.scalability import UslFit, usl

__all__ = [
    "METRICS",
    "ArmVerdict",
    "BlockComparison",
    "ClassicalTest",
    "Correlation",
    "Counts",
    "CurveFit",
    "Description",
    "Gate",
    "LinearFit",
    "Metric",
    "Moments",
    "NoiseFloor",
    "QuantileInterval",
    "UslFit",
    "Verdict",
    "autocorrelation",
    "benjamini_hochberg",
    "block_values",
    "block_values_of",
    "blocks_needed",
    "compare_blocks",
    "compare_groups",
    "compare_in_blocks",
    "compare_metric",
    "correlate",
    "counts_of",
    "decide",
    "default_headline",
    "describe",
    "fit_curve",
    "is_supported",
    "kendall",
    "kolmogorov_smirnov",
    "lm",
    "mann_whitney",
    "metric_named",
    "moments",
    "noise_floor",
    "pearson",
    "power_of",
    "prob_r",
    "prob_r_log10",
    "quantile",
    "quantile_interval",
    "smallest_visible",
    "spearman",
    "usl",
    "welch",
    "welch_from_summary",
]


def __getattr__(name: str) -> object:
    """Import a name on its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
