"""What happened between neighbouring snapshots, kept once: a report over a month adds it up.

index.py    which snapshots there are, without opening each
batch.py    the differences of many neighbouring pairs at once, each with its verdicts
chunk.py    an hour of them on disk: made once, made again where it is gone, never used when stale
total.py    a stretch of sub-intervals added up, as SQL, with what is not covered
chain.py    the stretch between two snapshots, made of chunks
"""
