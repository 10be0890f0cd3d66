"""How it was measured, and what the measuring itself cost."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base


def view(analysis: Analysis) -> base.View | None:
    """The sentences on the method, or None without any."""
    sentences = reading.strings(analysis, "method", "sentences")
    overhead = reading.dig(analysis, "method", "overhead")
    watching = ""
    if overhead:
        watching = fmt.line(reading.dig(overhead, "text") or "")
        if reading.dig(overhead, "ratio") is not None:
            ends = fmt.interval(reading.dig(overhead, "low"), reading.dig(overhead, "high"))
            within = f" ({ends})" if ends != fmt.NONE else ""
            measured = f"Measured: {fmt.change(reading.dig(overhead, 'ratio'))}{within}."
            watching = f"{watching} {measured}".strip()
    if not sentences and not watching:
        return None
    return {"sentences": sentences, "overhead": watching}


SECTION = base.Section("method", "Method", view)
