"""Real servers on N GPUs with faults, sgmon beside each of them from second 0. See README.md."""
