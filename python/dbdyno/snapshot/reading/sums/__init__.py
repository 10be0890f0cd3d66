"""Cached sums of what happened between neighbouring snapshots, which a report over a month adds up.

manifests.py         the files of the manifests, listed by the core
index.py             which snapshots there are, without opening each
indexed_snapshots.py the snapshots of the index
batch.py             the differences of many neighbouring pairs at once, each with its verdicts
pairwise.py          the same, pair by pair, for engines whose rules look at two snapshots at a time
chunk.py             an hour of them on disk: computed once, again if it is deleted, and never used when stale
look_sums.py         the sums of what was sampled in an hour
total.py             the sum over the sub-intervals of an interval, as SQL, with what is not covered
day.py               a day of complete hours on disk, so that a month opens 30 days and not 720 hours
chain.py             the interval between two snapshots, made of chunks
"""
