"""Verdicts outside of runs: on periods of snapshots and recordings of cells, alone or compared.

Sources only write evidence; this package decides what is compared, tested and called better or worse. Verdicts on runs
are in `dbdyno.study.analysis`. The result is a plain model, from which `dbdyno.pages` makes a page.
"""
