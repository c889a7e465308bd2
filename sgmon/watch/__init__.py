"""One watch: the engine thread, automatic stacks, what is kept."""
