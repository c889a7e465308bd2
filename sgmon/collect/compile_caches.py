"""Where servers and their dependencies keep what they compile: (variable, usual place)."""

from __future__ import annotations

from sgmon.servers import registry

CACHES = (
    ("TORCH_EXTENSIONS_DIR", "~/.cache/torch_extensions"),
    ("FLASHINFER_WORKSPACE_BASE", "~/.cache/flashinfer"),
    ("TVM_FFI_CACHE_DIR", "~/.cache/tvm-ffi"),
    ("AITER_JIT_DIR", "~/.aiter"),
    *((variable, place) for family in registry.families() for variable, place, _ in family.compile_caches),
)
