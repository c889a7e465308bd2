"""What the readings mean: log, stacks, GPUs, activity, diagnosis. Pure: no I/O, no clock."""
