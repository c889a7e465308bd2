"""Which signal of which process moved last, and how much."""
