"""The catalogue of metrics: what it contains for a name, and what the structure of an unknown name reveals."""

from __future__ import annotations

import pytest

from dbdyno.cells.catalogue import latency_parts, metric, names


def test_every_metric_has_a_meaning_a_kind_and_a_rule():
    assert len(names()) > 470
    for name in names():
        found = metric(name)
        assert found.known
        assert found.meaning
        assert found.kind in ("counter", "gauge", "rate", "transition", "unknown")
        assert found.rule in ("sum", "weighted", "spread")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("CD_IO_RQ_R_SM", "sum"),
        ("CD_IO_BY_R_LG_SEC", "sum"),
        ("FC_BY_DIRTY", "sum"),
        ("CD_IO_TM_R_SM_RQ", "weighted"),
        ("DB_IO_WT_LG_RQ", "weighted"),
        ("CD_IO_ST_RQ", "weighted"),
        ("CL_CPUT", "spread"),
        ("DB_IO_UTIL_SM", "spread"),
        ("CD_IO_LOAD", "spread"),
        ("CL_TEMP", "spread"),
        ("IORM_MODE", "spread"),
        ("FL_EFFICIENCY_PERCENTAGE", "spread"),
        ("FL_IO_W", "sum"),
    ],
)
def test_only_what_may_be_summed_is_summed(name: str, rule: str):
    assert metric(name).rule == rule


def test_a_latency_per_request_names_the_counters_that_it_is_the_ratio_of():
    assert latency_parts("CD_IO_TM_R_SM_RQ") == ("CD_IO_TM_R_SM", "CD_IO_RQ_R_SM")
    assert latency_parts("DB_FD_IO_WT_LG_RQ") == ("DB_FD_IO_WT_LG", "DB_FD_IO_RQ_LG")
    assert latency_parts("FL_IO_TM_W_RQ") == ("FL_IO_TM_W", "FL_IO_W")
    assert latency_parts("FC_IO_RQ_R") is None


def test_an_unknown_metric_is_data_and_its_name_is_read_as_far_as_it_goes():
    found = metric("FC_IO_RQ_R_NEWTHING_SEC")
    assert not found.known
    assert (found.kind, found.rule) == ("rate", "sum")
    assert found.meaning == "flash cache: requests of reads newthing per second"


def test_bytes_are_counted_in_bytes_even_where_the_manual_says_requests():
    # The manual lists FC_IO_BY_W_SKIP_NCMIRROR and ..._FC_THROTTLE in IO requests.
    for name in names():
        if "_BY_" in name and metric(name).unit:
            assert metric(name).unit in ("MB", "MB/sec", "GB", "KB", "KB/sec"), name


def test_an_unknown_rate_has_the_unit_of_its_counter():
    assert metric("FC_IO_BY_W_SKIP_NCMIRROR_SEC").unit == "MB/sec"
    assert metric("FC_IO_RQ_W_SKIP_NCMIRROR_SEC").unit == "IO/sec"
    assert metric("FC_IO_RQ_R_NEWTHING_SEC").unit == ""
