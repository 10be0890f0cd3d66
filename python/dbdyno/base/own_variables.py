"""Environment variables that dbdyno sets for itself, and withholds from the programs that it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

MATRIX_THREADS = "OPENBLAS_NUM_THREADS"
"""Number of threads of numpy's library for matrices.

It starts one for each processor when it is loaded, and they look for work for a tenth of a second; the matrices here
are too small to share.
"""

_own: dict[str, str] = {}
"""The variables that were set here, with their values."""


def set_own_variables() -> None:
    """Set the variables of this process that its user has not set; call it before numpy is imported."""
    if MATRIX_THREADS not in os.environ:
        os.environ[MATRIX_THREADS] = _own[MATRIX_THREADS] = "1"


def without_own_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables set by `set_own_variables`, for a program that dbdyno starts."""
    return {name: value for name, value in env.items() if _own.get(name) != value}
