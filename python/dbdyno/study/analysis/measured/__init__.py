"""What the evidence of a run says, by arm and block: numbers, not verdicts."""
