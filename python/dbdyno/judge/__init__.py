"""Verdicts on periods of snapshots and on recordings of cells, single or compared, but not on runs.

Sources only write evidence; this package decides what is compared, tested and called better or worse. Verdicts on runs
are in `dbdyno.study.analysis`. The result is a plain model, from which `dbdyno.pages` makes a page.
"""
