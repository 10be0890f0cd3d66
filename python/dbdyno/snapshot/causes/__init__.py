"""What changed between two stretches of one server, and why: small rules over the summed differences.

Each rule is a function of a `Change` and gives `Cause`s: words, evidence, the statements it touches. What
share of the change in database time a cause has is that of its statements; the statement itself, with
no cause found, comes last. A folder per engine with a file per family (`objects`, `load`, `server`) and what
is read of its views (`reading`); `statements` has the rules that every engine shares.
"""

from dbdyno.snapshot.causes.change import Cause, Change
from dbdyno.snapshot.causes.what_happened import ENGINES, Told, causes, change_of, cut_of, happened, told_once, within

__all__ = ["ENGINES", "Cause", "Change", "Told", "causes", "change_of", "cut_of", "happened", "told_once", "within"]
