"""Analysis models for the renderers' tests: realistic ones, and the worst possible ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from report_parts import (
    Model,
    make_arm,
    make_classical,
    make_engine,
    make_figures,
    make_gates,
    make_latencies,
    make_method,
    make_metrics,
    make_run,
    make_statements,
)

HOSTILE = "</script><img src=x onerror=alert(1)>'\"--&amp;{{7*7}}\u2028\u202e\x1b[31m\x00${x}`'];//"


def experiment(factors: tuple[float, ...] = (1.0, 1.066), seed: int = 7) -> Model:
    """Return a model of two or more arms: their medians are the factors times 100 us, tails grow slightly more."""
    dice = np.random.default_rng(seed)
    waits = [make_latencies(dice, factor) for factor in factors]
    names = ["work_mem 64 MB", "work_mem 4 MB", "work_mem 1 MB", "work_mem 256 kB"][: len(factors)]
    arms = [make_arm(at, name, waits[at]) for at, name in enumerate(names)]
    metrics = [row for at in range(1, len(arms)) for row in make_metrics(dice, at, arms[at], arms[0], factors[at])]
    return {
        "schema": 1,
        "kind": "experiment",
        "run": make_run("Does work_mem matter for the order report?"),
        "verdict": {
            "decision": "slower",
            "headline": f"{names[-1]} is slower than {names[0]}: the median by 6.6 %.",
            "sentences": [
                "The median went from 99.6 to 106 µs, 6.6 % slower (95 % interval 5.9 to 7.3 %, 20 blocks).",
                "Throughput fell by 6.1 %.",
                "The far tail (p99.9) differs by less than this run can see; 64 more blocks would tell.",
            ],
        },
        "arms": arms,
        "metrics": metrics,
        "classical": make_classical(len(arms)),
        "statements": make_statements(waits),
        "figures": make_figures(dice, waits, metrics),
        "warnings": [
            {
                "code": "generator-lag",
                "text": "In 3 of 20 blocks operations were started up to 4.1 ms late.",
                "next": "Lower the rate, or give the client its own CPU: sessions = 4.",
            },
            {
                "code": "busy-host",
                "text": "The fsync canary varied by 31 %: something else used the disk.",
                "next": "Run again when the host is quiet; --blocks 84 would tell p99.9.",
            },
        ],
        "gates": make_gates(),
        "method": make_method(),
        "engine": make_engine(),
    }


def four_arms() -> Model:
    """Return three arms compared with a base: faster, much slower, the same."""
    model = experiment((1.0, 0.82, 1.9, 1.004))
    model["verdict"] |= {
        "decision": "faster",
        "headline": "work_mem 4 MB is 18 % faster at the median.",
    }
    return model


def aa() -> Model:
    """Return one arm compared with itself."""
    model = experiment((1.0, 1.001), seed=11)
    model["kind"] = "aa"
    for arm in model["arms"]:
        arm["name"] = "as it is"
    model["arms"][1]["changes"] = {}
    model["run"]["title"] = "Noise floor of the order report"
    model["verdict"] = {
        "decision": "noise floor",
        "headline": "This set-up can see a difference of 1.2 % at the median with 20 blocks.",
        "sentences": [
            "One arm ran against itself, so every difference below is noise.",
            "To see 1 % at the median takes 29 blocks; to see 5 % at p99.9, 46.",
        ],
    }
    return model


def curve(found: bool = True, seed: int = 3) -> Model:
    """Commit time over redo size with a sawtooth of 1 MiB, or a straight line."""
    dice = np.random.default_rng(seed)
    redo = dice.uniform(0, 4 * 2**20, 1500)
    rising = redo % 2**20 if found else redo / 2.5
    took = (450_000 + 2.2 * rising) * dice.lognormal(0, 0.13, redo.size)
    took[dice.random(redo.size) < 0.012] *= dice.uniform(4, 14)
    edges = np.linspace(0, 4 * 2**20, 33)
    bins = []
    for low, high in pairwise(edges):
        inside = took[(redo >= low) & (redo < high)]
        quarter, middle, three = np.percentile(inside, (10, 50, 90))
        bins.append(
            {
                "redo_bytes": (low + high) / 2,
                "median_ns": middle,
                "low_ns": quarter,
                "high_ns": three,
                "n": int(inside.size),
            }
        )
    along = np.linspace(0, 4 * 2**20, 400)
    fitted = 452_000 + 2.21 * (along % 2**20 if found else along / 2.5)
    model = experiment((1.0,), seed)
    model["kind"] = "curve"
    model["arms"][0] |= {"name": "commit", "description": "update of n rows, then commit"}
    model["run"] = make_run("Commit time over redo size", title="redo-size")
    model["verdict"] = {
        "decision": "found" if found else "not found",
        "headline": "A sawtooth with a period of 1.00 MiB." if found else "No sawtooth: commit time rises evenly.",
        "sentences": ["Up to 1.00 MiB of redo, each further KiB costs 2.2 µs at commit; then it starts again."],
    }
    model["figures"] = {
        "curve": {
            "x_label": "redo bytes since the last commit",
            "bins": bins,
            "points": {"redo_bytes": redo.tolist(), "elapsed_ns": took.tolist()},
            "fit": {"redo_bytes": along.tolist(), "elapsed_ns": fitted.tolist()},
            "models": [
                {"name": "constant", "parameters": 1, "bic": 9120.4, "chosen": False},
                {"name": "straight line", "parameters": 2, "bic": 8873.0, "chosen": not found},
                {"name": "sawtooth", "parameters": 4, "bic": 7011.9, "chosen": found},
            ],
            "period_bytes": 2**20 if found else None,
            "found": found,
            "sentence": "The sawtooth is preferred over a straight line by 1861 BIC points.",
        }
    } | {key: value for key, value in model["figures"].items() if key in ("distribution", "waits", "heatmap", "tail")}
    return model


def correlation(seed: int = 5) -> Model:
    """Return statements with their hit ratio, blocks and time, and the correlations between them."""
    dice = np.random.default_rng(seed)
    blocks = dice.lognormal(2, 1.5, 48)
    took = blocks * dice.lognormal(9, 0.4, 48)
    ratio = np.clip(dice.beta(8, 1, 48), 0, 1)
    model = experiment((1.0,), seed)
    model["kind"] = "correlation"
    model["run"] = make_run("Is the hit ratio a measure of performance?", title="hit-ratio")
    model["verdict"] = {
        "decision": "not found",
        "headline": "No significant correlation between hit ratio and time of a call.",
        "sentences": ["The time of a call correlates far more with blocks touched per call."],
    }
    model["correlation"] = {
        "rows": [
            {
                "x": "hit ratio",
                "property": "hit_ratio",
                "n": 48,
                "pearson": 0.08,
                "low": -0.2,
                "high": 0.35,
                "pearson_log10_p": -0.23,
                "spearman": -0.05,
                "q": 0.73,
            },
            {
                "x": "blocks touched per call",
                "property": "blocks",
                "n": 48,
                "pearson": 0.9,
                "low": 0.83,
                "high": 0.94,
                "pearson_log10_p": -18.2,
                "spearman": 0.93,
                "q": 1e-20,
            },
        ],
        "statements": [
            {
                "statement": str(at),
                "text": f"select {at} from t",
                "calls": 10 + at,
                "mean_ns": took[at],
                "hit_ratio": ratio[at],
                "blocks": blocks[at],
            }
            for at in range(48)
        ],
        "assumption": "Assumed: the statements are independent of each other.",
    }
    model["figures"] = {
        "correlation": {
            "hit_ratio": ratio.tolist(),
            "mean_ns": took.tolist(),
            "label": [f"select {at} from t" for at in range(48)],
        }
    }
    return model


def aborted() -> Model:
    """Return a run with one complete block of thirty, whose intervals are unknown."""
    model = experiment()
    model["run"] |= {
        "status": "aborted",
        "blocks_planned": 30,
        "blocks_whole": 1,
        "duration_s": 9.7,
    }
    model["verdict"] = {
        "decision": "unclear",
        "headline": "Cannot tell: the run ended after 1 of 30 blocks.",
        "sentences": ["One block has no interval."],
    }
    for row in model["metrics"]:
        row.update(dict.fromkeys(("low", "high", "boot_low", "boot_high", "smallest_visible")))
        row.update(
            {
                "p": None,
                "q": None,
                "blocks": 1,
                "decision": "unclear",
                "blocks_needed": None,
                "words": "cannot tell",
            }
        )
    for entry in model["figures"]["quantile_ratio"]:
        entry.update({"low": [None] * len(entry["ratio"]), "high": None})
    for entry in model["figures"]["blocks"]:
        entry.update({key: entry[key][:1] for key in ("block", "at_s", "ratio", "marked")})
    model["classical"] = []
    model["warnings"] = [{"code": "aborted", "text": "The run was stopped.", "next": "dbdyno run --resume RUN"}]
    return model


def traces() -> Model:
    """Return a comparison of two sets of traces: commits take longer, and one event is new."""
    model = experiment()
    model["kind"] = "traces"
    mine = {"scaled_ns": 250_000.0}
    sides = [
        {"count": 900, "total_ns": 450_000_000, "max_ns": 900_000, "mean_ns": 500_000.0, **mine},
        {"count": 900, "total_ns": 540_000_000, "max_ns": 9_000_000, "mean_ns": 600_000.0, **mine},
    ]
    nothing = {"count": 0, "total_ns": 0, "max_ns": None, "mean_ns": None, "scaled_ns": 0.0}
    judged = [
        {**row, "metric": name} for row, name in zip(model["metrics"], ("mean", "per_execution", "p99"), strict=False)
    ]
    line = {
        "family": "event",
        "name": "log file sync",
        "class": "commit",
        "text": None,
        "only_in": None,
        "sides": sides,
        "difference_ns": 50_000.0,
        "metrics": judged,
    }
    statement = {"family": "statement", "name": "6v48b7j2tc4a0", "text": "select 1 from dual"}
    model["lines"] = [
        line,
        {**line, "name": "latch free", "only_in": 1, "sides": [nothing, sides[1]], "metrics": []},
        {**line, **statement, "difference_ns": -3.0},
    ]
    counts = {"executions": 900, "calls": 40_112, "round_trips": 1_800, "rows": 0, "hard_parses": 3, "commits": 900}
    model["account"] = {
        "basis": "run",
        "has_response": True,
        "response_ns": [9.7e9, 252e9],
        "database_ns": [4.1e9, 4.0e9],
        "sides": [{**counts, "think_ns": 0}, {**counts, "think_ns": 3_000_000_000}],
    }
    per = {"time_ns": 1e6, "gets": 20.0, "reads": 0.5, "rows": 100.0, "fetches": 2.0, "hard_parses": 0.01}
    side = {"executions": 900, "time_ns": 9e8, "plans": ["1111"], "per_execution": per}
    step = {"level": 0, "operation": "TABLE ACCESS FULL ORDERS", "rows_first": 100, "cr": 2_000.0}
    model["changes"] = [
        {
            "statement": "6v48b7j2tc4a0",
            "text": "select item, price from order_lines where order_id = :1",
            "texts": [1, 1],
            "depth": 0,
            "what": ["plan", "gets"],
            "difference_ns": 2e9,
            "sides": [side, {**side, "plans": ["9999"], "steps": [step, {**step, "level": 1}]}],
            "time": judged[0],
        },
        {
            "statement": "4xn8755d4fd5z",
            "text": "insert into audit_log values (:1, :2)",
            "texts": [0, 1],
            "depth": 1,
            "what": ["new"],
            "difference_ns": 4e8,
            "sides": [None, side],
            "time": None,
        },
    ]
    model["tails"] = {
        "threshold_ns": 900_000.0,
        "exceed": {
            "counts": [9, 31],
            "shares": [0.01, 0.034],
            "difference": 0.024,
            "low": 0.02,
            "high": 0.028,
            "p": 1e-5,
        },
        "longest": {"most": 100, "counts": [20, 80], "expected": [50.0, 50.0]},
        "quantiles": [
            {"name": "p99", "values_ns": [900_000.0, 1_900_000.0]},
            {"name": "p99.99", "values_ns": [None, None]},
        ],
    }
    parts = (("log file sync", 250_000.0, 300_000.0), ("CPU", 90_000.0, 80_000.0))
    model["figures"]["contributions"] = [
        {"name": name, "class": "other", "base_ns": base, "value_ns": value, "difference_ns": value - base}
        for name, base, value in parts
    ]
    return model


def bare(kind: str = "experiment") -> Model:
    """Return a model that has only its first keys."""
    return {"schema": 1, "kind": kind}


def hollow(kind: str = "experiment") -> Model:
    """Return a model with every key, in which every value is null or empty."""
    keys = ("arms", "metrics", "classical", "statements", "warnings", "gates")
    names = ("distribution", "quantile_ratio", "tail", "blocks", "heatmap", "waits")
    return {
        "schema": 1,
        "kind": kind,
        "run": dict.fromkeys(make_run("")),
        "verdict": {"decision": None, "headline": None, "sentences": []},
        **{key: [] for key in keys},
        "figures": {name: [] for name in names} | {"curve": None},
        "method": {"sentences": [], "overhead": None},
        "engine": {"facts": {}, "settings": []},
    }


def nulls() -> Model:
    """Return a realistic model in which every number is null."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: v if k in ("schema", "arm", "index", "baseline") else without(v) for k, v in value.items()}
        if isinstance(value, list):
            return [without(entry) for entry in value]
        return None if isinstance(value, float) or type(value) is int else value

    return without(experiment())  # type: ignore[no-any-return]


def hostile(kind: str = "experiment", model: Model | None = None) -> Model:
    """Return a model, by default one of these, in which every external string tries to break out of the page."""
    kept = {"kind", "schema", "unit", "metric", "decision", "started_at", "switch", "status"}

    def spoilt(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {
                (k if key not in ("changes", "facts", "error_codes") else k + HOSTILE): spoilt(v, k)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [spoilt(entry, key) for entry in value]
        return value + HOSTILE if isinstance(value, str) and key not in kept else value

    makers = {"curve": curve, "correlation": correlation, "traces": traces}
    return spoilt(makers.get(kind, experiment)() if model is None else model)  # type: ignore[no-any-return]
