"""Modelled storage cells that answer like real ones: the model behind a CellCLI behind SSH.

`language` reads commands, `things` says what can be listed, `answer` prints, `cell` carries out,
`rack` lets the model run, `serve` is the SSH server.
"""
