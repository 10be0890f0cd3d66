"""Next step for each kind of cause: one imperative sentence that is safe to follow."""

from __future__ import annotations

NEXT_STEPS = {
    "index": "Compare the plans of the statements below; create the index again if it was dropped by mistake.",
    "plan": "Compare the plans: dbdyno snap plans.",
    "growth": "Check what adds the rows, and whether an index serves these statements.",
    "bloat": "Find what holds back vacuum: dbdyno advise.",
    "spill": "Raise work_mem for these statements, or give them an index to sort by.",
    "device": "Check the storage under the log and the data: dbdyno probe.",
    "lock": "Find the session that holds the lock: dbdyno snap sessions shows each root blocker with its statement.",
    "checkpoint": "Compare max_wal_size with the WAL that is written between checkpoints: dbdyno advise.",
    "cache": "Compare again when the cache is warm.",
    "jit": "Raise jit_above_cost, or turn jit off for short statements.",
    "workers": "Find who uses the parallel workers: dbdyno snap sessions; or raise max_parallel_workers.",
    "sequence": "Let the sequence cache more values: ALTER SEQUENCE ... CACHE 1000.",
    "sessions": "Keep sessions open longer, with a connection pool.",
    "standby": "Find what delays its replay: dbdyno snap sessions on the standby.",
    "processor": "Check what else runs on the host.",
    "setting": "Try both values on your own load: dbdyno run.",
    "version": "Compare the plans of the statements below on both versions.",
    "log": "Compare the log's size with the amount written to it: dbdyno advise.",
    "statement": "Ask who sends it: By user and By database below.",
    "calls": "Ask who sends it: By user and By database below.",
    "slower": "Compare its plans and its waits: dbdyno snap plans, dbdyno snap sessions.",
    "failed": "Read the server's log for the errors.",
    "unread": "Create the extension pg_stat_statements (MariaDB: performance_schema=ON), then take new snapshots.",
    "": "Look at Active sessions, Waits and Top SQL of each period: dbdyno snap report.",
}


def next_step(code: str) -> str:
    """Return the next step for a cause of this kind; a general one if the kind is unknown."""
    return NEXT_STEPS.get(code, NEXT_STEPS[""])
