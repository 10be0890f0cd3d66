"""`python -m dbdyno`: the same as the console script."""

from dbdyno.entry import entry

if __name__ == "__main__":
    entry()
