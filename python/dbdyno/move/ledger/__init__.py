"""The folder of a job: its plan, what is finished, and a summary of both."""
