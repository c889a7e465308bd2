"""Below these, a counter that moves is noise and no sign of activity.

Measured: a TCPStore wait polls 3.5 KB/s of rchar at 1-2 % CPU for ever; an idle gloo rank takes
0.2-1.5 % CPU and 94 switches/s. Written bytes to sockets, system calls and context switches never
count: a hung rank has plenty of all three.
"""

from __future__ import annotations

#: bytes/s read (rchar or read_bytes) or newly mapped (RssFile) that count as reading
READ_BYTES_S = 32 * 1024
#: bytes/s of private memory growth that count as filling memory
ANON_BYTES_S = 128 * 1024
#: bytes/s written to disk that count (a download, a JIT cache); a log line dirties one 4 KiB page
WRITE_BYTES_S = 256 * 1024
#: percent of one core, on a CPU
CPU_PERCENT = 5.0
#: percent of one core, on a CPU or waiting for one: what a starved worker wants. Lower demand is no sign: on a busy
#: machine a TCPStore wait's 200 wake-ups a second queue for 10-15 % of the time.
DEMAND_PERCENT = 50.0
#: percent of one core that descendants must take to count as working children
CHILD_PERCENT = 20.0
#: bytes of GPU memory that count as a step
GPU_BYTES = 16 * 1024 * 1024
#: bytes/s over PCIe that count as copying weights
PCIE_BYTES_S = 16 * 1024 * 1024
#: TCPStore poll: rchar between these (bytes/s), CPU below CPU_PERCENT, asleep in nanosleep
STORE_POLL_BYTES_S = (1500, 9000)
