"""Analysis models of runs in virtual time, for the renderers' tests: sweeps, races, devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import report_models
from report_models import Model
from report_parts import make_run

from dbdyno.base.json_types import TableRow


def two_curves(apart: float = 1.2) -> Model:
    """Return the curves of a live run (without teeth) and of a model (with teeth), whose frame is `apart` times as
    large.
    """
    model, other = report_models.curve(found=False), report_models.curve()
    arms = model["arms"]
    arms.append(arms[0] | {"index": 1, "name": "model:san (ab12)", "baseline": False})
    first, second = model["figures"]["curve"], other["figures"]["curve"]
    for entry in second["bins"]:
        for key in ("median_ns", "low_ns", "high_ns"):
            entry[key] *= apart
    for key in ("points", "fit"):
        second[key]["elapsed_ns"] = [took * apart for took in second[key]["elapsed_ns"]]
    label = first.pop("x_label")
    model["figures"]["curve"] = {
        "x_label": label,
        "curves": [{"arm": 0, **first}, {"arm": 1, **second}],
    }
    return model


def sweep(settings: int = 6) -> Model:
    """Return throughput over jobs, one curve per setting, each of which saturates at another number of jobs."""
    model = report_models.experiment((1.0,))
    model["kind"] = "sweep"
    model["run"] = make_run("Which limit keeps the disks idle?", title="queue-depth")
    model["verdict"] = {
        "decision": "found",
        "headline": "At 32 sessions sd_max_throttle 32 does 5 times as much as 2.",
        "sentences": [],
    }
    curves = []
    for at in range(settings):
        points: list[TableRow] = []
        for step in range(6):
            jobs = 2**step
            rate = 40.0 * min(jobs, 2 ** (at / 2 + 1))
            points.append(
                {
                    "arm": at,
                    "x": float(jobs),
                    "per_s": rate,
                    "per_s_low": rate * 0.97,
                    "per_s_high": rate * 1.03,
                    "mean_ns": jobs / rate * 1e9,
                    "mean_low_ns": jobs / rate * 0.96e9,
                    "mean_high_ns": jobs / rate * 1.05e9,
                }
            )
        curves.append({"name": f"stripe_kb 32, sd_max_throttle {2**at}", "points": points})
    model["figures"] = {"sweep": {"x_label": "sessions", "operation": "transaction", "curves": curves}}
    return model


def station(name: str, arm: int, **values: Any) -> dict[str, Any]:
    """Return one row about the use of a device."""
    return {
        "arm": arm,
        "station": name,
        "stations": 1,
        "servers": 1,
        "utilisation": 0.42,
        "utilisation_max": 0.42,
        "queue": 0.6,
        "present": 1.02,
        "present_max": 9,
        "completions": 40_000,
        "per_s": 2_000.0,
        "sojourn_ns": 510_000.0,
        "wait_ns": 300_000.0,
        "service_ns": 210_000.0,
        "wait_max_ns": 4_100_000,
        "looks": 20,
        "little_broken": 0,
    } | values


def flash_log() -> Model:
    """Return two arms with a race in the second one, different tails, and the use of the devices."""
    model = report_models.experiment((1.0, 0.94))
    for arm, name in zip(model["arms"], ("flash log off", "flash log on"), strict=True):
        arm["name"] = name
    model["devices"] = [
        station("cell.disk", 0, stations=36, utilisation=0.3, utilisation_max=0.81),
        station("cell.disk", 1, stations=36, utilisation=0.29, utilisation_max=0.8),
        station("cores", 0, servers=24, utilisation=0.04, queue=0.0),
    ]
    model["race"] = [
        {
            "arm": 1,
            "disk_first": 532_152,
            "flash_first": 19_190,
            "prevented": 12,
            "outliers": 1,
            "flash_outliers": 0,
            "races": 551_342,
            "share": 0.034806,
            "low": 0.0341,
            "high": 0.0355,
            "blocks": 20,
            "level": 0.95,
        }
    ]
    model["databases"] = [
        {
            "arm": arm,
            "database": name,
            "transactions_per_s": rate,
            "disk_per_s": 3 * rate,
            "flash_per_s": 0.0,
            "share": share,
            "low": share - 0.013,
            "high": share + 0.013,
            "level": 0.95,
            "blocks": 20,
            "wait_ns": wait_ns,
        }
        for arm, name, rate, share, wait_ns in (
            (0, "ORCL", 351.2, 0.308, 0.0),
            (0, "TEST", 856.5, 0.692, None),
            (1, "ORCL", 694.7, 0.696, 28.8e6),
            (1, "TEST", 302.1, 0.304, 187e6),
        )
    ]
    model["tails"] = {
        "threshold_ns": 1_200_000.0,
        "exceed": {
            "counts": [40_000, 31_000],
            "shares": [0.01, 0.00775],
            "difference": -0.00225,
            "low": -0.0031,
            "high": -0.0014,
            "p": 0.0004,
        },
        "longest": {"most": 10_000, "counts": [7_900, 2_100], "expected": [5_000.0, 5_000.0]},
        "quantiles": [{"name": "p99.999", "values_ns": [88_000_000.0, 9_000_000.0]}],
    }
    return model


MODELS: dict[str, Callable[[], Model]] = {
    "experiment": report_models.experiment,
    "four_arms": report_models.four_arms,
    "aa": report_models.aa,
    "curve": report_models.curve,
    "curve_not_found": lambda: report_models.curve(found=False),
    "correlation": report_models.correlation,
    "hostile_correlation": lambda: report_models.hostile("correlation"),
    "aborted": report_models.aborted,
    "bare": report_models.bare,
    "bare_aa": lambda: report_models.bare("aa"),
    "hollow": report_models.hollow,
    "hollow_curve": lambda: report_models.hollow("curve"),
    "nulls": report_models.nulls,
    "hostile": report_models.hostile,
    "hostile_curve": lambda: report_models.hostile("curve"),
    "traces": report_models.traces,
    "hostile_traces": lambda: report_models.hostile("traces"),
    "two_curves": two_curves,
    "sweep": sweep,
    "flash_log": flash_log,
    "hostile_sweep": lambda: report_models.hostile(model=sweep()),
    "hostile_flash_log": lambda: report_models.hostile(model=flash_log()),
    "hostile_two_curves": lambda: report_models.hostile(model=two_curves()),
    "hollow_sweep": lambda: report_models.hollow("sweep"),
    "hollow_traces": lambda: report_models.hollow("traces"),
}
