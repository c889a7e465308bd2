"""Holds memory of one GPU until it is killed: ``python hold.py INDEX GIB`` or ``python hold.py INDEX left=GIB``.

Only the driver's library is used, so that the context is small and nothing is imported. Prints what it holds.
"""

import ctypes
import os
import sys
import time

GIB = 1024**3


def main(index: str, wanted: str) -> int:
    os.environ["CUDA_VISIBLE_DEVICES"] = index
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
        return 1
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    keep = wanted.startswith("left=")
    size = round(free.value - float(wanted[5:]) * GIB) if keep else round(float(wanted) * GIB)
    failed = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print(
        f"holds {size / GIB:.3f} GiB, {free.value / GIB:.3f} of {total.value / GIB:.3f} GiB free, error {failed}",
        flush=True,
    )
    time.sleep(3600)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
