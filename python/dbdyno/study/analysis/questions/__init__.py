"""Questions other than which of two arms is faster, one file each: their values and their verdict."""
