"""A deadlock in one rank of a real server: imported by its Python because this folder is on PYTHONPATH.

SGMON_TEST_HANG names a function ("module:name" or "module:Class.method"); in the process titled
sglang::scheduler_TP1 it never returns.
"""

import importlib.machinery
import os
import sys
import threading

MODULE, _, NAME = os.environ.get("SGMON_TEST_HANG", "").partition(":")
VICTIM = b"sglang::scheduler_TP1"


def take_lock_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def patch(module):
    *outer, name = NAME.split(".")
    owner = getattr(module, outer[0]) if outer else module
    real = getattr(owner, name)

    def stuck(*args, **kwargs):
        with open("/proc/self/cmdline", "rb") as file:
            if file.read().startswith(VICTIM):
                take_lock_twice()
        return real(*args, **kwargs)

    setattr(owner, name, stuck)


class PatchWhenImported:
    """A finder that finds only MODULE, and patches it as soon as it has run."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def run_and_patch(module):
            run(module)
            patch(module)

        spec.loader.exec_module = run_and_patch
        return spec


if MODULE and "--multiprocessing-fork" in sys.orig_argv:
    sys.meta_path.insert(0, PatchWhenImported())
