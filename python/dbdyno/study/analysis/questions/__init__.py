"""Questions other than which arm is faster: one file per question computes its values and its verdict."""
