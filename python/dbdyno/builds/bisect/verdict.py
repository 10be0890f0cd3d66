"""The result of a search among commits in words."""

from __future__ import annotations

from dbdyno.builds.bisect.model import BisectModel, Ratio, Verdict
from dbdyno.stats.wording import change_of

NAMED_MOST = 8
SHORT = 12


def verdict_of(model: BisectModel) -> Verdict:
    """Return the headline, the sentences that explain it, and the next step."""
    whole = f"{model['bad'][:SHORT]} is {_change(model['change'])} compared with {model['good'][:SHORT]}"
    suspects = model["suspects"]
    if not model["direction"]:
        headline = f"It is not known whether {model['bad'][:SHORT]} differs from {model['good'][:SHORT]}."
        step = "use more blocks (--blocks), a quieter machine, or commits that are further apart"
        return {"headline": headline, "sentences": [f"Measured: {whole}."], "next": step}
    error = f"The probability that this is wrong is at most {model['alpha'] * 100:g} %."
    if len(suspects) > 1:
        names = ", ".join(one["commit"][:SHORT] for one in suspects[:NAMED_MOST])
        more = f" and {len(suspects) - NAMED_MOST} more" if len(suspects) > NAMED_MOST else ""
        headline = f"One of {len(suspects)} commits made it {model['direction']}: {names}{more}."
        step = "correct --build so that the commits between them can be tested, or use more blocks (--blocks)"
        return {"headline": headline, "sentences": [f"{whole}.", error], "next": step}
    found = suspects[0]
    headline = f"{found['commit'][:SHORT]} made it {model['direction']}: {found['subject']}"
    sentences = [f"{whole}.", error]
    if model["step"] is not None and model["commits"] > 2:
        sentences.insert(1, f"Compared with its parent it is {_change(model['step'])}.")
    return {"headline": headline, "sentences": sentences, "next": f"git show {found['commit'][:SHORT]}"}


def _change(change: Ratio) -> str:
    return change_of(change["ratio"], change["low"], change["high"], higher_is_better=True)
