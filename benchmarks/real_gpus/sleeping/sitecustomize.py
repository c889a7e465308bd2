"""Puts one rank of a server to sleep at one place, for PYTHONPATH: SGMON_SLEEP="TP1,capture,45".

capture: before it enters graph capture, while the other ranks go on into their first collective. warmup: in its
first batch after the server has opened its port. The rank is known by its title. Nothing is changed elsewhere.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import time

_RANK, _PLACE, _SECONDS = [*os.environ.get("SGMON_SLEEP", "").split(","), "", ""][:3]
#: module -> (class, method) that is entered at the place
_PLACES = {
    "capture": {
        "sglang.srt.distributed.parallel_state": ("GroupCoordinator", "graph_capture"),
        "vllm.distributed.parallel_state": ("GroupCoordinator", "graph_capture"),
    },
    "warmup": {"sglang.srt.managers.scheduler": ("Scheduler", "run_batch")},
}
_slept = []


def _here():
    with open("/proc/self/cmdline", "rb") as file:
        return _RANK.encode() in file.read()


def _late(function):
    def called(*args, **kwargs):
        if not _slept and _here():
            _slept.append(1)
            print(
                f"sleeping: {_RANK} sleeps {_SECONDS} s at {_PLACE}, {time.time():.2f}", file=sys.stderr, flush=True
            )
            time.sleep(float(_SECONDS))
        return function(*args, **kwargs)

    return called


class _Loader(importlib.abc.Loader):
    def __init__(self, inner, place):
        self._inner, self._place = inner, place

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        self._inner.exec_module(module)
        owner = getattr(module, self._place[0], None)
        if owner is not None and hasattr(owner, self._place[1]):
            setattr(owner, self._place[1], _late(getattr(owner, self._place[1])))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        place = _PLACES.get(_PLACE, {}).get(name)
        if place is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, place)
        return spec


if _RANK:
    sys.meta_path.insert(0, _Finder())
