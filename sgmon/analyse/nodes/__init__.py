"""A server on several machines: one store a node, their snapshots merged, one verdict over all."""
