"""Variables that dbdyno sets for itself are not inherited by programs that it starts, which may be measured."""

from __future__ import annotations

import os

import pytest

from dbdyno.base import own_variables
from dbdyno.base.own_variables import MATRIX_THREADS, set_own_variables
from dbdyno.base.processes import child_environment, python_environment


@pytest.fixture(autouse=True)
def as_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_variables, "_own", {})
    monkeypatch.delenv(MATRIX_THREADS, raising=False)


def test_a_program_that_is_started_does_not_inherit_them() -> None:
    set_own_variables()
    assert os.environ[MATRIX_THREADS] == "1"
    assert MATRIX_THREADS not in child_environment()
    assert MATRIX_THREADS not in python_environment()


def test_what_the_user_has_set_is_kept_and_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MATRIX_THREADS, "1")
    set_own_variables()
    assert os.environ[MATRIX_THREADS] == "1"
    assert child_environment()[MATRIX_THREADS] == "1"
