"""Reads the facts of a start before it has happened: files, ports, memory, limits. Nothing is written or sent."""
