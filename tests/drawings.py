"""Charts in tests: drawn where a test looks at them, and each but once.

Half of the time of the tests of pages went into drawing equal charts anew, and a third of that of the laboratory into
charts that nobody looks at. A chart is always put together; it is written in Vega-Lite's words and drawn in
`tests/report` and in tests marked `drawn`. Elsewhere, and where the mark is `drawn(drawn=False)`, an empty picture
stands for it.
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
"""Whether the test under way looks at charts."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the fixtures of a test, which may make pages themselves."""
    mark = item.get_closest_marker("drawn")
    _looked_at[:] = [mark.kwargs.get("drawn", True) if mark else item.path.parent.name in LOOKED_AT]


@pytest.fixture(autouse=True, scope="session")
def drawn_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """Equal charts give equal pictures, for all processes of a run of tests."""
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
