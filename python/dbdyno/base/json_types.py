"""Type names for mappings whose keys are known only at run time.

Values that dbdyno itself builds and reads have dataclasses or TypedDicts instead.
"""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON or TOML document: a manifest, a plan, an answer of the core, the model of a page."""
TableRow: TypeAlias = dict[str, Any]
"""The values of one row of a query, of a file or of a displayed table, by column name."""
