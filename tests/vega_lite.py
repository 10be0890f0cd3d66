"""Charts validated with Vega-Lite's own schema, which is read only once; Altair reads it for every part of a chart."""

from __future__ import annotations

from functools import cache
from typing import Any

import altair
import jsonschema

from dbdyno.base.json_types import JsonObject


@cache
def _validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(altair.load_schema())


def accepted(chart: Any) -> JsonObject:
    """Return the chart's specification; raise `jsonschema.ValidationError` if Vega-Lite would reject it."""
    spec: JsonObject = chart.to_dict(validate=False)
    _validator().validate(spec)
    return spec
