"""What several tests of the laboratory share."""

TWO_ARMS = '[[arm]]\nname = "base"\n[[arm]]\nname = "other"\nsettings = {work_mem = "8MB"}\n'
