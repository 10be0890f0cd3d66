"""DuckDB without the Python layer of its package, whose import takes a tenth of a second of processor time.

The layer adds relations (`connection.sql`) and expressions, which dbdyno's own queries do not need. Connections,
results and errors are the same classes: a program that imports `duckdb` too may use both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:  # DuckDB before 1.4 has no module of this name
        import duckdb

__all__ = ["duckdb"]
