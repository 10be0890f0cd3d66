"""Fit of a device to measured latencies, with the quality of the fit.

The core computes the fit: a table of quantiles, their intervals from a bootstrap over stretches of the series, and, if
a slow state lasts, separate regimes. To show the quality of the fit, it fits the first half of the latencies and
reports how far that fit is from the second half, together with the distance between the two halves themselves. This
module turns the fit into a page, with sentences that interpret the figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.model.describe import SCHEMA

if TYPE_CHECKING:
    import numpy as np

LEAST = 100
# If the distance between the two halves exceeds this, they do not come from one unchanged device.
HIGH_FLOOR_KS = 0.1
ALIKE = 0.3


def calibration(latencies_us: np.ndarray[Any, Any], *, name: str, title: str) -> dict[str, object]:
    """Return the page about a device fitted to latencies [us], which are listed in the order of measurement.

    Args:
        latencies_us: the latencies.
        name: the device's name.
        title: the title of the page.

    Raises:
        ModelError: fewer than 100 latencies, or one that is not a number.
    """
    import numpy as np

    from dbdyno import _core

    values = np.ascontiguousarray(latencies_us, dtype="<f8")
    if len(values) < LEAST:
        raise ModelError(
            f"{len(values)} latencies are too few to fit a device",
            next_step=f"give {LEAST} latencies or more, and thousands for p99.9",
        )
    report = _core.model_calibrate(values.tobytes())
    text = (
        f"# Fitted by dbdyno to {len(values)} latencies: {title}\n"
        "# capacity_gb: state the measured device's; servers: how many requests it served at once\n"
        f'[devices.{name}]\nkind = "empirical"\ncapacity_gb = 100.0\nservers = 1\n{report["toml"]}'
    )
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "calibration",
        "title": title,
        **report,
        "sentences": sentences(report),
        "toml": text,
    }


def sentences(report: JsonObject) -> list[str]:
    """Return sentences that interpret the figures of a fit."""
    found = []
    distance, floor = report["distance"], report["floor"]
    if floor["ks"] > HIGH_FLOOR_KS:
        found.append(
            f"The two halves of the measurement differ by {floor['ks']:.2f}: the device changed during the "
            f"measurement, so no single table fits both."
        )
    elif distance["ks"] <= floor["ks"] + 0.01:
        found.append("The table fits as well as these data can show.")
    else:
        found.append(
            f"The table is off by {distance['ks']:.3f}, the halves differ by {floor['ks']:.3f}: more latencies would "
            f"give a better table."
        )
    lag = next((entry["measured"] for entry in report["lags"]), None) or 0.0
    if report["regimes"]:
        slow = report["regimes"][1]
        found.append(
            f"A slow regime takes {slow['share']:.1%} of the requests and lasts"
            f" {slow['stay_ms']:.3g} ms on average, if requests run one after another."
        )
    elif lag > ALIKE:
        found.append(
            f"Neighbouring latencies are correlated ({lag:.2f}), but there are no two lasting regimes: the fitted "
            f"device draws independently, so its queues will be shorter than real ones."
        )
    if report["blocks"] < 20:
        found.append(
            f"The correlation lasts so long that the intervals are based on only {report['blocks']} stretches: measure "
            f"longer."
        )
    return found
