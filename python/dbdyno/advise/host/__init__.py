"""Evidence of a live Linux host: block devices, memory and mounts from /sys and /proc, without root.

`read.py` reads it in the types of `parts.py`. Only files are read; nothing is started and nothing is written.
"""
