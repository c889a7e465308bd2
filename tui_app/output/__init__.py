"""What is sent to the terminal: only cells that differ, only when the terminal keeps up."""
