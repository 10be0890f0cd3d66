"""XML and JSON of CellCLI: unrounded values, their times, and the cells that they belong to."""

from __future__ import annotations

import json
import time

import pytest

from dbdyno.cells.documents import read_any
from fresh_dice import fresh_dice
from soaked import first

XML = """<?xml version="1.0" encoding="utf-8" ?>
<cli-output>
<context cell="cel04" realm="" ossStartTimestamp="1430673687318"/>
<metric> <name>SIO_IO_EL_OF</name>
<collectionTime>1431455744000</collectionTime>
<metricObjectName>SMARTIO</metricObjectName>
<metricType>Cumulative</metricType>
<metricValue>634659.296875</metricValue>
<objectType>SMARTIO</objectType>
</metric>
<metric><name>FL_IO_W</name><metricObjectName>FLASHLOG</metricObjectName>
<metricValue>12</metricValue></metric>
<celldisk><name>CD_00_cel04</name><size>557.859375G</size></celldisk>
</cli-output>
"""


def test_xml_has_the_cell_the_times_and_every_digit():
    found = read_any(XML)
    one, two = found.readings
    assert (one.cell, one.value, one.unit, one.text) == (
        "cel04",
        634659.296875,
        "MB",
        "634659.296875",
    )
    assert one.at_ns == 1_431_455_744 * 10**9
    assert found.started_ns == {"cel04": 1_430_673_687_318 * 10**6}
    assert (two.name, two.at_ns) == ("FL_IO_W", None)
    assert found.details == [{"": "cel04", "name": "CD_00_cel04", "size": "557.859375G"}]


def test_several_documents_in_one_file_keep_their_cells_apart():
    found = read_any(XML + XML.replace("cel04", "cel05"))
    assert [r.cell for r in found.readings] == ["cel04", "cel04", "cel05", "cel05"]


def test_a_document_that_breaks_off_is_read_as_far_as_it_goes():
    dice = fresh_dice()
    for _ in range(200):
        at = dice.randrange(60, len(XML) - 2)
        found = read_any(XML[:at])
        whole = XML[:at].count("</metric>")
        assert len(found.readings) == whole
        assert found.unread[-1].line <= XML[:at].count("\n") + 1


def test_json_is_taken_wherever_it_stands():
    text = '{"cell": "c1", "metrics": [{"name": "FL_IO_W", "metricValue": "1,200 IO requests"}]}'
    (row,) = read_any(text).readings
    assert (row.cell, row.value, row.unit) == ("c1", 1200.0, "IO requests")
    found = read_any('{"name": "FL_IO_W", "metricValue": 7}\n{"torn\n')
    assert (found.readings[0].value, found.unread[0].line) == (7.0, 2)


def test_text_is_still_text():
    assert read_any("FL_IO_W FLASHLOG 7").readings[0].object == "FLASHLOG"
    assert read_any("FC_BY_DIRTY  Instantaneous  166,816 MB").readings[0].object == ""


def test_a_document_type_is_refused_since_entities_could_make_a_small_text_huge():
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bb">]><cli-output>&b;</cli-output>'
    found = read_any(bomb)
    assert not found.details
    assert found.unread[0].why.startswith("a document type")


def test_an_alert_bears_a_metrics_value_and_is_no_metric():
    alert = {
        "name": "1_1",
        "alertSequenceID": "1",
        "metricValue": "7 IO requests",
        "metricObjectName": "FLASHLOG",
        "severity": "warning",
    }
    fields = "".join(f"<{key}>{text}</{key}>" for key, text in alert.items())
    xml = f"<cli-output><context cell='c1'/><alerthistory>{fields}</alerthistory></cli-output>"
    for text in (f"<?xml version='1.0'?>{xml}", json.dumps([alert])):
        found = read_any(text)
        assert found.readings == found.unread == []
        (detail,) = found.details
        assert detail["name"] == "1_1"


def test_what_stands_before_a_document_is_read_as_text_and_listed_where_it_is_none():
    document = """<?xml version="1.0"?>
<cli-output>
<metric><name>FL_IO_W</name><metricObjectName>FLASHLOG</metricObjectName>
<metricValue>7</metricValue></metric>
</cli-output>
"""
    found = read_any(f"Welcome to the cell\n\n  {document}{document}")
    assert [(r.name, r.value) for r in found.readings] == [("FL_IO_W", 7.0)] * 2
    assert [(one.line, one.text) for one in found.unread] == [(1, "Welcome to the cell")]
    quoted = read_any("FL_IO_W FLASHLOG 7\nsee <?xml\n")
    assert ([r.value for r in quoted.readings], len(quoted.unread)) == ([7.0], 1)


@pytest.mark.parametrize("unit", first("<?xml \n", "x<?xml", "\t<cli-output", "<?xml", "x <?xml\n", count=3))
def test_reading_xml_takes_time_in_proportion_to_its_length(unit: str):
    """In CPU time, of four times the text: about four times as long, not sixteen."""

    def cpu_s(count: int) -> float:
        text = unit * count
        began = time.process_time()
        read_any(text)
        return time.process_time() - began

    cpu_s(1000)
    assert min(cpu_s(80_000) for _ in range(3)) < 9 * max(min(cpu_s(20_000) for _ in range(3)), 0.01)
