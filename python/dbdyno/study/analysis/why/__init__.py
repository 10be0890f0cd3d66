"""Why one arm of a run is slower than another: what a transaction waited for, and what made it wait.

`parts` cuts the mean time of a transaction of each arm into events; `counted` has what the server counted beside it;
`reasons` finds what stands behind a group of events; `explain` puts both together and withholds what does not hold.
"""
