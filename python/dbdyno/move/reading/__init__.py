"""Reading of tables from the source: a job from its plan to its last chunk, and how it resumes."""
