"""Types of analysis.json: documented declarations (`declarations`, `explanation`), and rows as written (`rows`)."""
