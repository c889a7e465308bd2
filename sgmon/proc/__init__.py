"""Pure readers of /proc: each takes the root it reads below (a fake tree in tests), none keeps memory.

A file that cannot be read raises the ``OSError`` it gave; ``files.missing`` turns that into words.
Nothing here opens what a watched process has open: descriptors are read with ``readlink`` alone, because an
``open`` or ``stat`` of a file on a hung mount puts the caller in state D as well (measured: 604 s).
"""
