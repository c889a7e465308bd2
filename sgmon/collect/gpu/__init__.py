"""GPU vendors, each in a child process."""
