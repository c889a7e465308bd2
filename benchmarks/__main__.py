"""``python -m benchmarks``: the quick ones, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    if path.stem in ("terminal", "log_viewer", "link", "__main__"):
        continue
    print(f"--- {path.stem}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], check=False)
