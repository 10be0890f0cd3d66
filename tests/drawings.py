"""A chart that several tests draw is drawn once: half of the time of the tests of pages went into drawing them anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest


@pytest.fixture(autouse=True, scope="session")
def drawn_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """Equal charts give equal pictures, for all processes of a run of tests."""
    import vl_convert

    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "drawings"
    folder.mkdir(exist_ok=True)
    draw = vl_convert.vegalite_to_svg

    def remembered(spec: dict[str, Any], **options: Any) -> str:
        key = hashlib.sha256(json.dumps([spec, options], sort_keys=True).encode()).hexdigest()
        path = folder / key
        if not path.exists():
            aside = path.with_suffix(f".{worker_id}")
            aside.write_text(draw(spec, **options))
            aside.rename(path)
        return Path(path).read_text()

    with mock.patch.object(vl_convert, "vegalite_to_svg", remembered):
        yield
