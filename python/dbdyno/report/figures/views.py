"""Charts put together: layers over each other, panels below or beside each other.

Altair copies the whole tree of charts whenever some of them are put together, and again on every level when it writes
them: half of the time of a report. Here each chart is written once, and what holds them is Vega-Lite's own words. Data
stand once, by their name, as Altair has it.
"""

from __future__ import annotations

from typing import Any


class View:
    """Charts under one of `layer`, `vconcat`, `hconcat`, `concat`; used as an Altair chart is."""

    def __init__(self, how: str, parts: tuple[Any, ...], **more: Any) -> None:
        self._how, self._parts, self._more = how, parts, more
        self.title: Any = more.pop("title", None)
        self.background: str | None = None
        self.padding: dict[str, int] | None = None
        self.config: dict[str, Any] = {}

    def resolve_scale(self, **channels: str) -> View:
        """Whether the parts share the scale of a channel: `shared` or `independent`."""
        self._more["resolve"] = {"scale": channels}
        return self

    def to_dict(self, validate: bool = True, context: dict[str, Any] | None = None) -> dict[str, object]:
        """As Vega-Lite's specification; a part of another view gets its `context`.

        Raises:
            altair.utils.schemapi.SchemaValidationError: validated, and not what Vega-Lite takes.
        """
        shared: dict[str, Any] = {"datasets": {}, "top_level": False} if context is None else context
        spec: dict[str, Any] = {
            self._how: [part.to_dict(validate=False, context=shared) for part in self._parts],
            **{name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self._more.items()},
        }
        if self.title is not None:
            spec["title"] = self.title
        return spec if context is not None else self._whole(spec, shared["datasets"], validate)

    def _whole(self, spec: dict[str, Any], datasets: dict[str, Any], validate: bool) -> dict[str, Any]:
        """What stands at the top only."""
        import altair as alt

        named = {"background": self.background, "padding": self.padding, "datasets": datasets or None}
        whole = {"$schema": alt.SCHEMA_URL, **spec, **{name: value for name, value in named.items() if value}}
        view = {"continuousWidth": 300, "continuousHeight": 300, **self.config.get("view", {})}
        whole["config"] = {**self.config, "view": view}
        if validate:
            alt.Chart.from_dict(whole)
        return whole


def layer(*parts: Any, **more: Any) -> View:
    """Charts over each other, the first at the bottom, in one frame; `more`: width, height, title."""
    return View("layer", parts, **more)


def vconcat(*parts: Any, spacing: int) -> View:
    """Charts below each other, with pixels between them."""
    return View("vconcat", parts, spacing=spacing)


def hconcat(*parts: Any, spacing: int) -> View:
    """Charts beside each other, with pixels between them."""
    return View("hconcat", parts, spacing=spacing)


def concat(*parts: Any, columns: int, spacing: int) -> View:
    """Charts in rows of so many, with pixels between them."""
    return View("concat", parts, columns=columns, spacing=spacing)
