"""Taking snapshots: one, one per period, of one target or of many."""
