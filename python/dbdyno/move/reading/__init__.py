"""The way out: a job from its plan to its last chunk, and how it resumes."""
