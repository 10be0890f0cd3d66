"""The reason for a skip names on one line what is missing and how to get it, because pytest's summary cuts it off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.base.errors import TargetError
from skipped import reason, skipped_on

TESTS = Path(__file__).resolve().parents[1]


def test_a_skip_names_the_command_that_gets_what_is_missing():
    error = TargetError("PostgreSQL 16 is not here", next_step="tools/matrix --fetch 16")
    assert reason(error) == "PostgreSQL 16 is not here; tools/matrix --fetch 16"
    line = r"^PostgreSQL 16 is not here; tools/matrix --fetch 16$"
    with pytest.raises(pytest.skip.Exception, match=line), skipped_on(TargetError):
        raise error


def test_no_test_skips_with_an_error_as_it_stands():
    alone = re.compile(r"pytest\.skip\((?:str\(error\)|error\.message)\)")
    here = Path(__file__)
    found = [path.name for path in TESTS.rglob("test_*.py") if path != here and alone.search(path.read_text())]
    assert found == []
