"""Prediction of a live PostgreSQL by a machine calibrated from one arm of a run.

observation.py   what an arm did: CPU, waits and times of its statements
scripts.py       the arm's script as steps of a modelled session, its rows and sizes drawn by the script itself
fit.py           the machine's parameters, each with interval and source, and the machine as TOML
host.py          the same without a database: from probes of the host, with costs of statements by `reference.py`
sync_methods.py  a device for each `wal_sync_method`
compare.py       every arm of a run: model beside live
"""
