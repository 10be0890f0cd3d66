"""Parts of a release: the same version everywhere, a citation, and a bill of materials of everything in a wheel."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dbdyno.base.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    loader = SourceFileLoader("sbom", str(ROOT / "tools" / "sbom"))
    spec = importlib.util.spec_from_loader("sbom", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bill(tool: ModuleType) -> Any:
    return tool.bill()


def test_the_citation_has_the_version_and_the_licence() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(VERSION)}$", text, re.MULTILINE)
    assert "license: Apache-2.0\n" in text and "cff-version: 1.2.0\n" in text


def test_the_bill_has_every_crate_and_package_with_licence_and_checksum(bill: Any) -> None:
    crates = [one for one in bill["components"] if one["purl"].startswith("pkg:cargo/")]
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    known = {f"pkg:cargo/{one['name']}@{one['version']}" for one in lock if "source" in one}
    assert {one["bom-ref"] for one in crates} <= known
    assert {"arrow-array", "parquet", "pyo3", "memchr"} <= {one["name"] for one in crates}
    assert all(one["licenses"] and len(one["hashes"][0]["content"]) == 64 for one in crates)
    names = {one["name"].lower() for one in bill["components"]}
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split(r"[\[>]", one)[0].lower() for one in asked} <= names


def test_what_only_tests_or_builds_is_not_in_it(bill: Any) -> None:
    assert not {"proptest", "criterion", "insta", "maturin", "pytest"} & {one["name"] for one in bill["components"]}


def test_every_reference_is_a_component_and_the_file_is_the_same_each_time(tool: ModuleType, bill: Any) -> None:
    refs = {one["bom-ref"] for one in bill["components"]}
    assert len(refs) == len(bill["components"])
    assert {dep for one in bill["dependencies"] for dep in one["dependsOn"]} <= refs
    assert json.dumps(tool.bill()) == json.dumps(bill)


def test_a_tag_of_another_version_is_refused() -> None:
    done = subprocess.run([str(ROOT / "tools/check-wheels"), "v9.9.9"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"the tag is v9.9.9, the version {VERSION}" in done.stderr
