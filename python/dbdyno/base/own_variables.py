"""Environment variables that dbdyno sets for itself, and withholds from the programs that it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

MATRIX_THREADS = "OPENBLAS_NUM_THREADS"
"""Variable that sets the number of threads of OpenBLAS, numpy's library for matrices.

By default the library starts one thread for each processor when it is loaded, and they spin for a tenth of a second;
the matrices here are too small for several threads.
"""

_own: dict[str, str] = {}
"""Environment variables that `set_own_variables` has set, with their values."""


def set_own_variables() -> None:
    """Set the variables of this process that its user has not set; call it before numpy is imported."""
    if MATRIX_THREADS not in os.environ:
        os.environ[MATRIX_THREADS] = _own[MATRIX_THREADS] = "1"


def without_own_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables set by `set_own_variables`, for a program that dbdyno starts."""
    return {name: value for name, value in env.items() if _own.get(name) != value}
