"""Jobs on a Spark cluster, and their files on a Hadoop file system."""
