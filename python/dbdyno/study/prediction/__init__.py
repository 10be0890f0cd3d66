"""Prediction of a live PostgreSQL by a machine calibrated from one arm of a run.

observed.py   what an arm did: CPU, waits and times of its statements
scripts.py    the arm's script as steps of a modelled session, its rows and sizes drawn by the script itself
fit.py        the machine's parameters, each with interval and source
machine.py    the machine as TOML
compare.py    every arm of a run: model beside live
"""
