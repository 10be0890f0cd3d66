"""What each engine supports: one table generated from the code, shown in docs/reference/engines.md.

python tests/manners/engines.py     # writes that page
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from dbdyno.advise.judge import rules
from dbdyno.snapshot.causes.what_happened import ENGINES as CAUSES
from dbdyno.snapshot.engines.registry import BLOCKING, MODULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "engines.md"
ENGINES = ("postgres", "mariadb", "oracle")
NAMES = {"postgres": "PostgreSQL", "mariadb": "MariaDB", "oracle": "Oracle"}
HEAD = """# What each engine answers

Made from the code by `tests/manners/engines.py`; do not edit. A dash means that the command refuses this engine and
says so. Nothing here was run against a real Oracle instance. [Add an engine](../how-to/add-an-engine.md) shows how to
add one.

"""


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _bench(engine: str) -> str:
    return "yes" if _has(f"dbdyno.bench.{engine}.bench") else "–"


def _sections(engine: str) -> str:
    order = getattr(importlib.import_module(f"{MODULES[engine]}.sections"), "ORDER", ())
    return f"{len(order)} sections" if order else "yes"


def _causes(engine: str) -> str:
    families = CAUSES[engine][1]
    count = sum(len(family.RULES) for family in families)
    return f"{count} rules: {', '.join(family.__name__.rpartition('.')[2] for family in families)}"


def _advice(engine: str) -> str:
    found = [one for one in rules() if engine in one.engines]
    return f"{len(found)} rules" if found else "–"


ROWS: dict[str, Callable[[str], str]] = {
    "`run`, `tune`: a load on it": _bench,
    "`restore`, `doctor`": lambda engine: "yes" if _has(f"dbdyno.bench.{engine}.restore") else "–",
    "`snap take`, `watch`, `report`": _sections,
    "`snap top`": lambda engine: "yes" if _has(f"{MODULES[engine]}.live") else "–",
    "`snap sessions`: who blocks whom": lambda engine: "yes" if engine in BLOCKING else "–",
    "`snap plans`: plans from its log": lambda engine: "yes" if engine == "postgres" else "–",
    "`compare snap:A snap:B`: causes": _causes,
    "`advise`": _advice,
    "`move`: out of it": lambda engine: "yes" if _has(f"dbdyno.move.engines.{engine}.source") else "–",
    "`move`: into it": lambda engine: "yes" if _has(f"dbdyno.move.engines.{engine}.publish") else "–",
}


def page() -> str:
    """Return the page with the table of engines."""
    lines = [f"| | {' | '.join(NAMES[engine] for engine in ENGINES)} |", "|---|" + "---|" * len(ENGINES)]
    lines += [f"| {what} | {' | '.join(answer(engine) for engine in ENGINES)} |" for what, answer in ROWS.items()]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
