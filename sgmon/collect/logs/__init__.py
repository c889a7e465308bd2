"""How the log is followed: a file, a command that prints it, or our own input."""
