"""Small rules that find what changed between two periods of one server, and why, from the counters of both periods.

Each rule is a function of a `Change` that yields `Cause`s: words, evidence and the statements affected. A cause's share
of the change in database time is the share of the statements that it affects; a statement for which no cause was found
is listed last. Each engine has a folder with one file per family of rules (`objects`, `load`, `server`) and a file that
reads the engine's views (`reading`); `statements` has the rules that all engines share.
"""

from dbdyno.snapshot.causes.change import Cause, Change
from dbdyno.snapshot.causes.what_happened import (
    ENGINES,
    ReportedCause,
    causes,
    causes_section,
    causes_within,
    change_at,
    change_of,
    cut_of,
    reported_causes,
)

__all__ = [
    "ENGINES",
    "Cause",
    "Change",
    "ReportedCause",
    "causes",
    "causes_section",
    "causes_within",
    "change_at",
    "change_of",
    "cut_of",
    "reported_causes",
]
