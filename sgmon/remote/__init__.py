"""Other machines: a collector that travels there over a pipe, and the source that its events come back through."""
