"""This machine as a bench: its facts, and the files of its redo probe."""
