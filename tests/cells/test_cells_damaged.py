"""Damaged listings: what is kept of each, and what is reported about the rest, with its line number."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dbdyno.cells.documents import read_any
from dbdyno.cli.cells.imports import command

GOOD = "cel01: FL_IO_W \t FLASHLOG\t 1,040,000 IO requests\n"
DEFINED = '<?xml version="1.0"?>\n<cli-output>\n<context cell="cel01"/>\n'
METRIC = (
    "<metric><name>FL_IO_W</name><metricObjectName>FLASHLOG</metricObjectName><metricValue>{}</metricValue></metric>\n"
)
NO_VALUE = "a metric without a value that can be read"
NEITHER = "neither a metric, nor an attribute, nor an error"
NO_TIME = "a metric whose time of collection cannot be read"
SEPARATORS = "a number whose separators are not those of CellCLI in English (1,325.8)"

DAMAGED = {
    "nothing but blanks": ("\n \n\t\n", 0, []),
    "a metric without its value": (GOOD + "cel01: FL_RQ_W FLASHLOG\n", 1, [(2, NO_VALUE)]),
    "a value that is a word": (GOOD + "cel01: FL_RQ_W FLASHLOG N/A\n", 1, [(2, NO_VALUE)]),
    "a value cut within its thousands": (
        GOOD + "cel01: FL_RQ_W FLASHLOG 1,04",
        1,
        [(2, SEPARATORS)],
    ),
    "a value cut before its unit": (GOOD + "cel01: FL_RQ_W FLASHLOG 1,040", 1, [(2, NO_VALUE)]),
    "a unit cut in the middle": (GOOD + "cel01: FL_RQ_W FLASHLOG 1,040 IO req", 1, [(2, NO_VALUE)]),
    "thousands with dots": (
        GOOD + "cel01: FL_RQ_W FLASHLOG 1.040.000 IO requests\n",
        1,
        [(2, SEPARATORS)],
    ),
    "requests with decimals": (
        GOOD + "cel01: FL_RQ_W FLASHLOG 1.325 IO requests\n",
        1,
        [(2, SEPARATORS)],
    ),
    "decimals with a comma": (
        GOOD + "cel01: FC_BY_DIRTY FLASHCACHE 0,062 MB\n",
        1,
        [(2, SEPARATORS)],
    ),
    "thousands with blanks": (
        GOOD + "cel01: FL_RQ_W FLASHLOG 1 040 000 IO requests\n",
        1,
        [(2, SEPARATORS)],
    ),
    "a line wrapped by the terminal": (
        "FL_PREVENTED_OUTLIERS   FLASHLOG\n      7 IO requests\n",
        0,
        [(1, NO_VALUE), (2, NEITHER)],
    ),
    "a prompt and an echo": ("CellCLI> list metriccurrent\n" + GOOD + "CellCLI>\n", 1, []),
    "a prefix of grep": ("x.txt:12:FL_IO_W FLASHLOG 7 IO requests\n" + GOOD, 1, [(1, NEITHER)]),
    "ssh in between": (
        GOOD + "cel02: ssh: connect to host cel02 port 22: No route to host\n" + GOOD,
        2,
        [(2, NEITHER)],
    ),
    "dcli could not connect": ("Unable to connect to cells: ['cel02']\n" + GOOD, 1, [(1, NEITHER)]),
    "a banner": ("*** Authorised use only ***\n" + GOOD, 1, [(1, NEITHER)]),
    "a page of a web server": ("<html><body>Proxy error</body></html>\n", 0, [(1, NEITHER)]),
    "bytes that are no text": ("\ufffd\ufffd\x01\x02\n" + GOOD, 1, [(1, NEITHER)]),
    "another tool's table": (
        "Device: rrqm/s wrqm/s\nsda 0.00 1.20\n" + GOOD,
        1,
        [(1, NEITHER), (2, NEITHER)],
    ),
    "XML that breaks off": (
        DEFINED + METRIC.format(7) + "<metric><name>FL_R",
        1,
        [(5, "no XML from column 19 on")],
    ),
    "XML whose tags do not match": (
        DEFINED + METRIC.format(7) + "<metric></cell>\n" + METRIC.format(8),
        1,
        [(5, "no XML from column 11 on")],
    ),
    "XML with a value that is none": (
        DEFINED + METRIC.format("n/a") + "</cli-output>\n",
        0,
        [(1, "a metric without a number")],
    ),
    "XML of nothing": (DEFINED + "</cli-output>\n", 0, []),
    "XML with a document type": (
        "<?xml version='1.0'?><!DOCTYPE a><cli-output/>\n",
        0,
        [(1, "a document type declaration, which no cell sends; the document is left out")],
    ),
    "a second document that breaks off": (
        DEFINED + METRIC.format(7) + "</cli-output>\n" + DEFINED + METRIC.format(8) + "<met",
        2,
        [(10, "no XML from column 1 on")],
    ),
    "JSON that breaks off": (
        '{"metric": [{"name": "FL_IO_W", "metricValue": 7}, {"na',
        1,
        [(1, "no JSON: ")],
    ),
    "JSON of many lines that breaks off": (
        '{"metric": [\n{\n"name": "FL_IO_W",\n"metricValue": 7\n},\n{\n"name": "FL_',
        1,
        [(7, "no JSON: ")],
    ),
    "JSON a line, one torn": (
        '{"name": "FL_IO_W", "metricValue": 7}\n{"na\n{"name": "FL_RQ_W", "metricValue": 8}\n',
        2,
        [(2, "no JSON: ")],
    ),
    "JSON with a value that is none": (
        '[{"name": "FL_IO_W", "metricValue": null}]',
        0,
        [(1, "a metric without a number")],
    ),
    "JSON with a number too large": (
        '[{"name": "FL_IO_W", "metricValue": 1e999}]',
        0,
        [(1, "a metric without a number")],
    ),
    "history with a time that cannot be": (
        "FL_IO_W FLASHLOG 7 IO requests 2012-13-45T99:33:45-04:00\n" + GOOD,
        1,
        [(1, NO_TIME)],
    ),
}


@pytest.mark.parametrize(("text", "kept", "told"), DAMAGED.values(), ids=DAMAGED.keys())
def test_what_is_whole_is_kept_and_the_rest_is_told(text: str, kept: int, told: list):
    found = read_any(text)
    assert len(found.readings) == kept
    assert [(e.line, e.why[: len(why)]) for e, (_, why) in zip(found.unread, told, strict=True)] == told


@pytest.mark.parametrize("text", [text for text, kept, told in DAMAGED.values() if kept and told])
def test_import_keeps_the_whole_lines_names_the_others_and_exits_with_two(text: str, tmp_path: Path):
    file = tmp_path / "archived.txt"
    file.write_text(text)
    found = CliRunner().invoke(command, [str(file), "--out", str(tmp_path / "run")])
    assert found.exit_code == 2
    for entry in read_any(text).unread:
        assert f"{file}:{entry.line}: {entry.why}" in found.stderr
