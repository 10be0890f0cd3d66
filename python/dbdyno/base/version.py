"""Version of dbdyno, the same as in pyproject.toml and Cargo.toml.

Reading it from the installed package's metadata costs 12 ms of imports, a third of the time to start a command.
"""

VERSION = "0.1.0"
