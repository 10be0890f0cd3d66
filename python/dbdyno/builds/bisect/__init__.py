"""Search for the commit that changed the speed of a program: commits, builds, tests, the search."""
