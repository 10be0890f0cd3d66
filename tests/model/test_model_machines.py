"""`dbdyno model list, show, new, check`: how users see machines."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dbdyno import _core
from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.cli.main import cli
from dbdyno.model.describe import commented_text, describe, toml_value
from dbdyno.report.figures import machine as drawing

MACHINES = _core.model_machines()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["model", *arguments])


def machine(parts: list[TableRow], **roots: list[str]) -> JsonObject:
    """Return a machine page with these parts, each given by its name and the parts below it."""
    return {
        "schema": 1,
        "kind": "model",
        "page": "machine",
        "title": "made",
        "instance": "2 cores",
        "roots": [{"role": role, "over": over} for role, over in roots.items()],
        "parts": parts,
        "parameters": [],
    }


def part(name: str, *over: str) -> JsonObject:
    return {"name": name, "kind": "disk", "over": list(over), "count": 1, "text": f"a {name}"}


def test_list_names_every_machine_with_title_and_parts():
    rows = json.loads(run("list", "--format", "json").output)
    assert [row["name"] for row in rows] == MACHINES
    assert all(row["title"] and row["parts"] for row in rows)


@pytest.mark.parametrize("name", MACHINES)
def test_show_tells_every_parameter_with_its_meaning_and_source(name: str):
    shown = json.loads(run("show", name, "--format", "json").output)
    assert shown["parameters"]
    for parameter in shown["parameters"]:
        assert parameter["meaning"], parameter["path"]
        assert parameter["source"], parameter["path"]
    text = run("show", name).output
    for entry in shown["parts"]:
        assert entry["name"] in text


@pytest.mark.parametrize("name", MACHINES)
def test_the_page_and_the_drawing_are_whole(name: str, tmp_path: Path):
    page = run("show", name, "--format", "html")
    assert page.exit_code == 0
    assert "<svg" in page.output
    assert run("show", name, "-o", str(tmp_path / "m.svg")).exit_code == 0
    root = ET.fromstring((tmp_path / "m.svg").read_text())
    boxes = root.findall("{http://www.w3.org/2000/svg}rect")
    shown = describe(name)
    assert len(boxes) == 1 + len(shown["databases"]) + len(shown["parts"])


@pytest.mark.parametrize("name", MACHINES)
def test_new_writes_a_machine_that_is_right_also_with_every_comment_taken_away(name: str, tmp_path: Path):
    mine = tmp_path / "mine.toml"
    assert run("new", str(mine), "--like", name).exit_code == 0
    assert run("check", str(mine)).exit_code == 0
    bare = re.sub(r"^# (\[[^\]]*\]|[a-z_.0-9]+ = .*)$", r"\1", mine.read_text(), flags=re.MULTILINE)
    mine.write_text(bare)
    checked = run("check", str(mine), "--format", "json")
    assert checked.exit_code == 0, checked.exception
    before = {p["path"]: p["value"] for p in describe(name)["parameters"]}
    after = {p["path"]: p["value"] for p in describe(str(mine))["parameters"]}
    assert after == before


def test_new_leaves_a_file_alone(tmp_path: Path):
    mine = tmp_path / "mine.toml"
    mine.write_text("mine")
    assert isinstance(run("new", str(mine)).exception, ModelError)
    assert mine.read_text() == "mine"
    assert isinstance(run("new", str(tmp_path / "mine.txt")).exception, ModelError)


def test_check_names_key_line_and_what_is_allowed(tmp_path: Path):
    mine = tmp_path / "mine.toml"
    mine.write_text(commented_text(MACHINES[0]).replace("cores =", "coers ="))
    error = run("check", str(mine)).exception
    assert isinstance(error, ModelError)
    assert re.search(r"mine\.toml.*line \d+.*coers", str(error))
    assert "cores" in (error.next_step or "")
    told = run("check", str(mine), "--format", "json")
    assert told.exit_code == 2
    assert json.loads(told.output)["ok"] is False


def test_a_machine_that_is_not_there_is_told_with_what_is():
    error = run("show", MACHINES[0] + "x").exception
    assert isinstance(error, ModelError)
    assert MACHINES[0] in str(error)


def test_a_part_under_several_is_drawn_once_and_named_again_in_the_tree():
    page = machine([part("a", "disk"), part("b", "disk.3"), part("disk")], redo=["a"], data=["b"])
    lines = drawing.tree(page)
    assert sum("disk  a disk" in line for line in lines) == 1
    assert sum("disk (above)" in line for line in lines) == 1
    assert drawing.svg(page).count("<rect") == 4


def test_roles_on_one_part_share_its_line():
    lines = drawing.tree(machine([part("a")], redo=["a"], data=["a"], temp=["a"]))
    assert lines[1].startswith("└─ redo, data, temp: a")


def test_parts_that_nothing_uses_are_set_apart():
    lines = drawing.tree(machine([part("a"), part("b", "c"), part("c")], redo=["a"]))
    assert lines[lines.index("not in use") + 1].strip() == "b  a b"


def test_a_database_beside_stands_over_the_same_storage_also_by_the_name_of_a_part():
    page = machine([part("a")], redo=["a"], data=["a"])
    page["databases"] = [{"name": "a", "text": "20 sessions"}]
    lines = drawing.tree(page)
    assert lines[2:] == ["a  beside it: 20 sessions", "└─ redo, data: a (above)"]
    svg = drawing.svg(page)
    assert (svg.count("<rect"), svg.count("redo, data")) == (3, 1)


def test_show_and_check_know_databases_beside(tmp_path: Path):
    shown = json.loads(run("show", "exadata-x2-shared", "--format", "json").output)
    assert [row["name"] for row in shown["databases"]] == ["TEST"]
    paths = [row["path"] for row in shown["parameters"]]
    assert {"databases.TEST.cores", "databases.TEST.workload.sessions"} <= set(paths)
    mine = tmp_path / "mine.toml"
    mine.write_text(_core.model_machine("exadata-x2-shared").replace("keys =", "kyes ="))
    error = run("check", str(mine)).exception
    assert isinstance(error, ModelError)
    assert re.search(r"line \d+, databases\.TEST\.workload\.kyes", str(error))
    assert "keys" in (error.next_step or "")


def test_a_circle_is_drawn_rather_than_walked_for_ever():
    page = machine([part("a", "b"), part("b", "a")], redo=["a"])
    assert drawing.svg(page).count("<rect") == 3
    assert any("a (above)" in line for line in drawing.tree(page))


def test_text_from_a_file_is_no_markup():
    page = machine([part("<script>")], redo=["<script>"])
    assert "<script>" not in drawing.svg(page)


def test_values_as_toml_writes_them():
    assert toml_value({"a": [1, 2.5], "b": 'x"y'}) == '{ a = [1, 2.5], b = "x\\"y" }'
    assert toml_value(value=True) == "true"
