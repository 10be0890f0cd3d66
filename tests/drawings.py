"""Charts in tests: drawn only where a test looks at them, and each chart only once.

Tests of pages spent half of their time on drawing identical charts again, and tests of the laboratory a third on charts
that no test looks at. The data of a chart is always prepared. Its Vega-Lite specification is written and drawn only in
`tests/report` and in tests marked `drawn`. Elsewhere, and with the mark `drawn(drawn=False)`, an empty picture replaces
it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from dbdyno.base.json_types import JsonObject

LOOKED_AT = ("report",)
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0,0h8v8h-8Z" fill="#fff"/></svg>'


_looked_at = [True]
"""True if the current test looks at charts."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note whether the test looks at charts, before its fixtures run, because they can create pages."""
    mark = item.get_closest_marker("drawn")
    _looked_at[:] = [mark.kwargs.get("drawn", True) if mark else item.path.parent.name in LOOKED_AT]


@pytest.fixture(autouse=True, scope="session")
def drawn_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """Draw identical charts only once for all processes of a test run."""
    import vl_convert

    from dbdyno.report import svg

    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "drawings"
    folder.mkdir(exist_ok=True)
    draw = vl_convert.vegalite_to_svg

    def remembered(spec: JsonObject, **options: Any) -> str:
        key = hashlib.sha256(json.dumps([spec, options], sort_keys=True).encode()).hexdigest()
        path = folder / key
        if not path.exists():
            aside = path.with_suffix(f".{worker_id}")
            aside.write_text(draw(spec, **options))
            aside.rename(path)
        return path.read_text()

    inline = svg.inline

    def looked_at(chart: Any, prefix: str, label: str) -> str:
        return inline(chart, prefix, label) if _looked_at[0] else svg.clean_svg(EMPTY, prefix, label)

    with mock.patch.object(vl_convert, "vegalite_to_svg", remembered), mock.patch.object(svg, "inline", looked_at):
        yield
