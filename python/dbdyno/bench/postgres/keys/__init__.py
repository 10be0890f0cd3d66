"""Keys in the statements of a capture: where a replay may send a key that the server generated anew.

`catalog` reads the target's keys and foreign keys, `origins` and `scopes` resolve the columns of a parsed statement,
`places` finds the parameters and literals of a statement that are keys, and `plan` does so for a whole capture.
"""
