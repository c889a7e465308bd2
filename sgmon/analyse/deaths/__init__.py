"""Which process of a crashed server died first, and which it took down with it."""
