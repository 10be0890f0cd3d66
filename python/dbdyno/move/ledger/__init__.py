"""A job's folder: its plan, its finished chunks, and a summary of both."""
