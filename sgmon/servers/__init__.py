"""Families of servers: one folder each, data files and pure functions. The rest of the engine names none."""
