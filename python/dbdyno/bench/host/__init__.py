"""This machine as a bench: what it is, and the files of its redo probe."""
