"""Modelled storage cells that answer like real ones: a model, with a CellCLI in front of it, reached by SSH.

`language` parses commands, `objects` defines what can be listed, `answer` formats output, `cell` carries out commands,
`rack` runs the model, `serve` is the SSH server.
"""
