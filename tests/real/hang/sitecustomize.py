"""A deadlock in one rank of a real server: imported by its Python because this folder is on PYTHONPATH.

SGMON_TEST_HANG names a method of SGLang's ModelRunner; in the process titled sglang::scheduler_TP1 it never returns.
"""

import os
import sys
import threading
import time

METHOD = os.environ.get("SGMON_TEST_HANG", "")
MODULE = "sglang.srt.model_executor.model_runner"
VICTIM = b"sglang::scheduler_TP1"


def take_lock_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def patch(runner):
    real = getattr(runner, METHOD)

    def stuck(*args, **kwargs):
        with open("/proc/self/cmdline", "rb") as file:
            if file.read().startswith(VICTIM):
                take_lock_twice()
        return real(*args, **kwargs)

    setattr(runner, METHOD, stuck)


def patch_when_imported():
    while True:
        runner = getattr(sys.modules.get(MODULE), "ModelRunner", None)
        if runner is not None and hasattr(runner, METHOD):
            patch(runner)
            return
        time.sleep(0.02)


if METHOD and any("multiprocessing-fork" in word for word in sys.orig_argv):
    threading.Thread(target=patch_when_imported, daemon=True).start()
