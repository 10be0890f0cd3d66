"""Explanation of why one arm of a run is slower than another: what a transaction waited for, and what made it wait.

`parts` divides the mean time of a transaction of each arm into events; `server_counters` has the server's counters per
transaction; `reasons` finds the causes of a group of events; `explain` combines both and withholds what is not certain.
"""
