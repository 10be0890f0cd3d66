"""What changed between two stretches of one server, and why: small rules over the summed differences.

Each rule is a function of a `Change` and gives `Cause`s: words, evidence, the statements it touches. What
share of the change in database time a cause has is that of its statements; the statement itself, with
no cause found, comes last. A file per family: `objects`, `load`, `server`.
"""

from dbdyno.snapshot.causes.change import Cause, Change
from dbdyno.snapshot.causes.happened import happened, within

__all__ = ["Cause", "Change", "happened", "within"]
