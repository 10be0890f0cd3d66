"""Types of analysis.json: documented declarations (`declarations`, `explanation`), and row types (`rows`)."""
