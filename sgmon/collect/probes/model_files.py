"""How large the model is on disk: the sum of its *.safetensors.

Its folder may lie on a mount that hangs. There a thread in state D would keep sgmon from ending, so that file systems
which another machine answers for are asked by a child process, which can be left behind; local ones by a thread.
"""

from __future__ import annotations

import os
import threading

from sgmon.discovery import inner
from sgmon.discovery.inner import Inside
from sgmon.model import Server
from sgmon.proc import child

_CHILD_S = 20.0


class ModelFiles:
    """``measure`` starts a look unless one is still under way; a download makes the model grow between two."""

    def __init__(self, root: str, server: Server) -> None:
        self.folder = ""
        self.total_bytes: int | None = None
        self._root = root
        self._server = server
        self._thread: threading.Thread | None = None

    def measure(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._look, name="model-files", daemon=True)
            self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """For tests: until the look has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _look(self) -> None:
        inside = inner.of(self._root, self._server.pid)
        for folder in model_folders(inside, self._server):
            sizes = _sizes(inside, folder)
            if sizes:
                self.folder, self.total_bytes = folder, sum(sizes)
                return


def model_folders(inside: Inside, server: Server) -> list[str]:
    """The model path itself, else its snapshot in the Hugging Face cache (hub/models--ORG--NAME/snapshots)."""
    path = server.args.model_path
    if not path:
        return []
    found = [path if path.startswith("/") else f"{inside.cwd}/{path}"]
    environ = inner.environment(inside.root, inside.pid) or {}
    home = environ.get("HF_HOME") or f"{environ.get('HOME', '/root')}/.cache/huggingface"
    cache = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub"
    repo = f"{cache}/models--{path.replace('/', '--')}"
    commit = inside.text(f"{repo}/refs/{dict(server.args.raw).get('revision', '') or 'main'}", 200).strip()
    return [*found, f"{repo}/snapshots/{commit}"] if commit else found


def _sizes(inside: Inside, folder: str) -> list[int]:
    """Bytes of each *.safetensors (links followed: the Hugging Face cache links to its blobs)."""
    here = inside.reach(folder)
    if inside.remote(folder):
        argv = ["find", "-L", here, "-maxdepth", "1", "-name", "*.safetensors", "-printf", "%s\\n"]
        return [int(line) for line in (child.output(argv, _CHILD_S) or b"").split() if line.isdigit()]
    try:
        with os.scandir(here) as entries:
            return [entry.stat().st_size for entry in entries if entry.name.endswith(".safetensors")]
    except OSError:
        return []
