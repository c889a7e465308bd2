"""Receives the collector on a far machine: read from stdin by ``python3 -c``, so that it must run on any Python 3.

After its own text come two lines, the number of the archive's bytes and the arguments as JSON, and then the archive.
The archive is kept in memory, or in a file without a name: nothing stays on the far machine.
"""

import os
import sys
import tempfile

if sys.version_info < (3, 8):
    sys.stderr.write("sgmon: Python %d.%d is too old here, 3.8 is needed\n" % sys.version_info[:2])
    sys.exit(97)
source = sys.stdin.buffer
size = int(source.readline())
packed = source.read(size)
if len(packed) < size:
    sys.stderr.write("sgmon: the collector did not arrive whole\n")
    sys.exit(98)
try:
    descriptor = os.memfd_create("sgmon")
except (AttributeError, OSError):
    place = tempfile.TemporaryFile()
    descriptor = os.dup(place.fileno())
    place.close()
with open(os.dup(descriptor), "wb") as written:
    written.write(packed)
root = "/proc/self/fd/%d" % descriptor
sys.path.insert(0, root)
try:
    import msgspec

    old = tuple(int(part) for part in msgspec.__version__.split(".")[:2]) < (0, 18)
except (ImportError, ValueError):
    old = True
if old:
    sys.modules.pop("msgspec", None)
    sys.path.insert(1, root + "/standin")
else:
    sys.path.append(root + "/standin")

from sgmon.remote.collector import main  # noqa: E402

main(source)
