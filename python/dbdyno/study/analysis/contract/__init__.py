"""analysis.json as types: what is declared and documented (`declared`, `why`), and what is written (`rows`)."""
