"""What was verified at the end of a job, and what the job cost the source."""
