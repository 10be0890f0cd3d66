"""Verdicts that are not on runs: on single or compared periods of snapshots and recordings of cells.

Sources only write evidence; this package decides what is compared, tested and called better or worse. Verdicts on runs
are in `dbdyno.study.analysis`. The result is a plain model, from which `dbdyno.pages` makes a page.
"""
