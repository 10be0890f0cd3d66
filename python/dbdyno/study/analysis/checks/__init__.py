"""What withholds a verdict, and what a reader has to know."""
