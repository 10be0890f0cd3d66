"""A storage stack from the host down to the disks, computed from a description; nothing is measured.

`keys.py` and `read.py` define and read the description, `layers.py` computes how many commands each layer lets through,
`parts.py` has the types.
"""
