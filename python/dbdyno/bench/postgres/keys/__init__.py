"""Keys in a capture's statements, for which a replay may have to send newly generated keys.

`catalog` reads the target's keys and foreign keys, `origins` and `scopes` resolve the columns of a parsed statement,
`places` finds the parameters and literals of a statement that are keys, and `plan` does so for a whole capture.
"""
