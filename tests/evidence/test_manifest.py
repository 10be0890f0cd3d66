"""The manifest of a run as a type: its values, missing keys, and keys of the wrong type."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.manifest import Manifest, Section, kinds
from dbdyno.evidence.run import Run, new_run


def test_what_it_says_is_written_again_in_the_same_order_and_nothing_else() -> None:
    said = {"schema": 1, "title": "t", "of_a_later_version": [1, {"a": None}], "seed": 7}
    assert list(Manifest.from_values(said).to_json().items()) == list(said.items())


def test_what_has_a_default_need_not_be_there_and_what_has_none_is_an_error_with_its_name() -> None:
    manifest = Manifest.from_values({"schema": 1})
    assert (manifest.title, manifest.slice_ns, manifest.resumed, manifest.restored) == ("", None, (), True)
    assert manifest.has("schema") and not manifest.has("title")
    with pytest.raises(EvidenceError, match="lacks 'arms'") as caught:
        _ = manifest.arms
    assert "restore it from a copy" in str(caught.value)
    with pytest.raises(EvidenceError, match="lacks 'judge'"):
        _ = Manifest.from_values({"plan": Section()}).plan["judge"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("arms", {}, "lacks 'arms', or its value is not of type list"),
        ("seed", "7", "lacks 'seed', or its value is not of type int"),
        ("plan", None, "lacks 'plan', or its value is not of type dict"),
        ("turn_ns", "1s", "lacks 'turn_ns', or its value is not of type int"),
        ("wall_s", [], "lacks 'wall_s', or its value is not of type int or float"),
        ("process", "x", "lacks 'process', or its value is not of type dict"),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_with_its_name_and_file(
    tmp_path: Path, name: str, value: object, words: str
) -> None:
    run = new_run(tmp_path, "x", {"kind": "experiment"})
    path = run.path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(EvidenceError, match=words) as caught:
        Run.open(run.path)
    assert caught.value.where == str(path)


def test_it_is_changed_by_making_another() -> None:
    manifest = Manifest.from_values({"schema": 1, "seed": 7})
    with pytest.raises(FrozenInstanceError):
        manifest.seed = 8  # type: ignore[misc]
    assert (manifest.with_values(seed=8).seed, manifest.seed) == (8, 7)


def test_saving_and_opening_gives_the_same_values(tmp_path: Path) -> None:
    run = new_run(tmp_path, "x", {"kind": "experiment", "plan": {"title": "t"}, "arms": [{"name": "a"}], "seed": 7})
    run.save(resumed=[3])
    assert Run.open(run.path).manifest.to_json() == run.manifest.to_json()
    assert Run.open(run.path).manifest.plan["title"] == "t"


def test_every_field_has_a_kind_that_json_has() -> None:
    assert {kind for allowed in kinds().values() for kind in allowed} <= {
        *(str, int, float, bool, list, tuple, dict, type(None), object)
    }
