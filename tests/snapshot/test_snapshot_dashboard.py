"""The dashboard of docs/grafana: its JSON has what Grafana needs, and each query uses columns that the export has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from snapshot_help import Lab

from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.sending.exports import samples

PATH = Path(__file__).resolve().parents[2] / "docs/grafana/dbdyno-snapshots.json"
FUNCTIONS = {"rate", "time", "sum", "by", "increase", "max"}
UNITS = {"ops", "none", "ns", "Bps", "s", "bytes", "dtdurations", "reqps"}
"""Grafana's names of the units that the dashboard uses."""


@pytest.fixture(scope="module")
def dashboard() -> JsonObject:
    made: JsonObject = json.loads(PATH.read_text())
    return made


def test_it_has_what_grafana_reads_of_a_dashboard(dashboard: JsonObject) -> None:
    """By Grafana's documentation of the JSON model: a title, a schema version, panels on a grid 24 wide that do not
    overlap, each with a source that the user chooses."""
    assert dashboard["title"] and dashboard["uid"] and dashboard["schemaVersion"] >= 36
    assert "id" not in dashboard, "an id belongs to one Grafana"
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert variables["source"]["type"] == "datasource"
    panels = dashboard["panels"]
    assert len({one["id"] for one in panels}) == len(panels) >= 8
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        for one in (panel, *panel["targets"]):
            assert one.get("datasource", panel["datasource"]) == {"type": "prometheus", "uid": "${source}"}
        for word in re.findall(r"\$\{?(\w+)", json.dumps(panel)):
            assert word in variables, word


def test_each_query_asks_for_a_metric_that_is_exported(dashboard: JsonObject, lab: Lab) -> None:
    lab.run("create table shown (id int)")
    for number in range(2):
        lab.run(f"insert into shown values ({number})")
        lab.take()
    known = {one.name: {name for name, _ in one.labels} for one in samples(lab.store.folder)}
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    for query in queries:
        assert query.count("(") == query.count(")") and query.count("{") == query.count("}")
        outside = re.sub(r'\{[^}]*\}|\[\w+\]|"[^"]*"', " ", query)
        named = {one for one in re.findall(r"[a-z_]\w+", outside) if one not in FUNCTIONS | {"label_values", "target"}}
        assert named and named <= known.keys(), (query, sorted(known))
        assert all("target" in known[one] for one in named)
