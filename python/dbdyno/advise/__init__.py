"""Rules over evidence that say what to change, with figures, a fix and what would refute the advice.

A rule is data and one pure function (`rule.py`); a file under `rules/` has one, or a family whose rules are rows of
data. `facts.py` is what rules read, in the types of `kinds.py`; `live.py` reads them of a server without changing
it, `snapshots.py` of two snapshots, `run.py` of a manifest. `judge.py` asks every rule. Nothing here changes a server:
fixes are words.
"""
