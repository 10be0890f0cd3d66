"""A storage stack from the host down to the disks: its description (`keys.py`, `read.py`), how many commands each
layer lets through (`layers.py`), in the types of `parts.py`. Arithmetic on what was described; nothing is measured."""
