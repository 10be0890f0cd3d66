"""A live Linux host: block devices, memory, mounts from /sys and /proc, without root (`read.py`), in the types of
`parts.py`. Only files are read; nothing is started and nothing is written."""
