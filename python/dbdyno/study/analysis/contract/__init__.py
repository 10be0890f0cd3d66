"""Types of analysis.json: what is declared and documented (`declared`, `why`), and what is written (`rows`)."""
