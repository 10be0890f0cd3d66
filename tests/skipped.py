"""Why a test is skipped: one line with what is missing and the command that gets it, as pytest's summary shows it."""

from __future__ import annotations

from typing import NoReturn

import pytest

from dbdyno.base.errors import Error


def reason(error: Error) -> str:
    """`PostgreSQL 16 is not here; tools/matrix --fetch 16`."""
    return "; ".join(" ".join(part.split()) for part in (error.message, error.next_step) if part)


def skip_for(error: Error) -> NoReturn:
    """Skips the test for what is missing here."""
    pytest.skip(reason(error))
