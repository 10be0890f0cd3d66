"""Reason for a skipped test: one line with what is missing and the command that installs it, for pytest's summary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from dbdyno.base.errors import Error


def reason(error: Error) -> str:
    """Return message and next step in one line, such as `PostgreSQL 16 is not here; tools/matrix --fetch 16`."""
    return "; ".join(" ".join(part.split()) for part in (error.message, error.next_step) if part)


@contextlib.contextmanager
def skipped_on(kind: type[Error]) -> Iterator[None]:
    """Skip the test for what the block finds missing here, if its error is of this kind."""
    try:
        yield
    except kind as error:
        pytest.skip(reason(error))
