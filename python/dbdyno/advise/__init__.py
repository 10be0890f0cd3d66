"""Advice: rules over evidence, each with figures, expected effect, fix, and what would refute it.

A rule is data and one pure function (`rule.py`); a file under `rules/` contains one rule, or a family whose rules are
rows of data. `facts.py` has the evidence that rules read, in the types of `kinds.py`. `read.py` and `snapshots.py` of
each engine read it from a live server, without changing it, and from two snapshots; `run.py` reads it from a manifest.
`judge.py` evaluates every rule. Nothing here changes a server: fixes are text.
"""
