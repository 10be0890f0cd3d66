"""One version, written in a place where reading it is cheap."""

from __future__ import annotations

import tomllib
from pathlib import Path

from dbdyno.base.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_every_package():
    said = {
        name: tomllib.loads((ROOT / name).read_text())
        for name in ("pyproject.toml", "Cargo.toml", "packages/dbdyno-rig/pyproject.toml")
    }
    cargo = said.pop("Cargo.toml")["workspace"]["package"]["version"]
    assert {cargo, *(about["project"]["version"] for about in said.values())} == {VERSION}
