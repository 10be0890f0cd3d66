"""Entry point of `python -m dbdyno`, which behaves like the console script."""

from dbdyno.entry import entry

if __name__ == "__main__":
    entry()
