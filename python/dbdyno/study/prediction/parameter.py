"""A parameter of a calibrated machine: its value, its interval, and the source of both."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import JsonObject

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.95

MEASURED, FITTED, DEFAULT = "measured", "fitted", "default"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a calibrated machine.

    Attributes:
        key: Key of the parameter in its section of the machine.
        value: Value: a number, a word, a truth value, or a structure.
        source: One of `measured`, `fitted` and `default`.
        how: Description of how the value was obtained.
        low: Lower end of the interval, or NaN.
        high: Upper end of the interval, or NaN.
        unit: Unit of the value.
    """

    key: str
    value: Any
    source: str
    how: str
    low: float = math.nan
    high: float = math.nan
    unit: str = ""

    def toml(self) -> str:
        """Return the parameter's line in a machine file."""
        ends = ""
        if math.isfinite(self.low) and math.isfinite(self.high):
            ends = f"low = {toml_value(self.low)}, high = {toml_value(self.high)}, "
        source = json.dumps(f"{self.source}: {self.how}", ensure_ascii=False)
        return f"{self.key} = {{ value = {toml_value(self.value)}, {ends}source = {source} }}"


def measured_parameter(key: str, values: Iterable[float], how: str, unit: str = "") -> Parameter:
    """Return a parameter that is the mean over the blocks, with Student's interval; values below 0 become 0."""
    from dbdyno.stats.means import mean_interval

    mean, low, high = mean_interval(values, LEVEL)
    return Parameter(key, max(mean, 0.0), MEASURED, how, max(low, 0.0), max(high, 0.0), unit)


def toml_value(value: Any) -> str:
    """Return a value in TOML syntax; numbers with six significant digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if "." in text or "e" in text else f"{text}.0"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml_value(own)}" for key, own in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return str(value)


def quantile_table(values: Floats) -> JsonObject:
    """Return measured quantiles as a distribution for a machine: 81 points, of which 31 are in the last decile."""
    import numpy as np

    body = [0.0, 0.0005, 0.002, 0.005, *(0.01 + at / 50 for at in range(45))]
    places = [*body, *(1.0 - 10 ** (-1.0 - at / 10) for at in range(31)), 1.0]
    found = np.maximum.accumulate(np.maximum(np.quantile(values, places), 1e-3))
    return {"kind": "measured", "probability": [round(p, 8) for p in places], "us": [float(us) for us in found]}
