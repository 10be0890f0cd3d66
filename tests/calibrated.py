"""A small machine in the form that `dbdyno model calibrate` writes."""

CALIBRATED = """
title = "made"
[postgres]
cores = 2
calibrated_sessions = 1
flush_us = { value = 20.0, low = 18.0, high = 22.0, source = "measured: made" }
client_us = { value = 10.0, low = 9.0, high = 11.0, source = "measured: made" }
delay = { kind = "exponential", mean_us = 100.0 }
statements = [{ text = "insert", user_us = 60.0, system_us = 20.0, wal_bytes = 300.0 }]
scripts = [{ weight = 1, steps = [{ statement = 0, commits = true }] }]
[devices.log]
kind = "empirical"
capacity_gb = 10.0
servers = 1
regimes = [{ read = { kind = "constant", us = 1.0 }, write = { kind = "constant", us = 500.0 } }]
[storage]
redo = "log"
data = "log"
"""
