"""Composition of charts: layers over each other, panels below or beside each other.

Altair copies the whole tree of charts whenever charts are combined, and again on every level when it serialises them;
this takes half of the time of a report. Here each chart is serialised once, and the composition is written directly
as Vega-Lite.
Data are stored once, by name, as Altair does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.base.json_types import JsonObject


class View:
    """Several charts as one, by Vega-Lite's `layer`, `vconcat`, `hconcat` or `concat`; used like an Altair chart."""

    def __init__(self, how: str, parts: tuple[Any, ...], **more: Any) -> None:
        self._how, self._parts, self._more = how, parts, more
        self.title: Any = more.pop("title", None)
        self.background: str | None = None
        self.padding: dict[str, int] | None = None
        self.config: JsonObject = {}

    def resolve_scale(self, **channels: str) -> View:
        """Set whether the parts share the scale of a channel, `shared` or `independent`, and return the view."""
        self._more["resolve"] = {"scale": channels}
        return self

    def to_dict(self, validate: bool = True, context: JsonObject | None = None) -> dict[str, object]:
        """Return Vega-Lite's specification; a part of another view gets that view's `context`.

        Raises:
            altair.utils.schemapi.SchemaValidationError: with `validate`, if the result is not valid Vega-Lite.
        """
        shared: JsonObject = {"datasets": {}, "top_level": False} if context is None else context
        spec: JsonObject = {
            self._how: [part.to_dict(validate=False, context=shared) for part in self._parts],
            **{name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self._more.items()},
        }
        if self.title is not None:
            spec["title"] = self.title
        return spec if context is not None else self._whole(spec, shared["datasets"], validate)

    def _whole(self, spec: Mapping[str, Any], datasets: Mapping[str, Any], validate: bool) -> JsonObject:
        """Return a complete Vega-Lite specification: that of the views, with schema, configuration and data added."""
        import altair as alt

        named = {"background": self.background, "padding": self.padding, "datasets": datasets or None}
        whole = {"$schema": alt.SCHEMA_URL, **spec, **{name: value for name, value in named.items() if value}}
        view = {"continuousWidth": 300, "continuousHeight": 300, **self.config.get("view", {})}
        whole["config"] = {**self.config, "view": view}
        if validate:
            alt.Chart.from_dict(whole)
        return whole


def layer(*parts: Any, **more: Any) -> View:
    """Return charts overlaid in one frame, the first at the bottom; `more`: width, height, title."""
    return View("layer", parts, **more)


def vconcat(*parts: Any, spacing: int) -> View:
    """Return charts below each other, with `spacing` pixels between them."""
    return View("vconcat", parts, spacing=spacing)


def hconcat(*parts: Any, spacing: int) -> View:
    """Return charts beside each other, with `spacing` pixels between them."""
    return View("hconcat", parts, spacing=spacing)


def concat(*parts: Any, columns: int, spacing: int) -> View:
    """Return charts in rows of `columns`, with `spacing` pixels between them."""
    return View("concat", parts, columns=columns, spacing=spacing)
