"""Questions other than which arm is faster, with one file each for their values and their verdict."""
