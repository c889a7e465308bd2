"""Which vendor's GPUs this machine has: the module that reads them, and what helps when they cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

_LOOK = "look for Xid in dmesg"


class Vendor(Struct, frozen=True):
    """One vendor. module: its gateway; source: the library's name; remedies: code -> what helps."""

    module: str
    source: str
    no_library: str
    remedies: Mapping[int, str]
    look: str
    package: str  # what is to be installed when the gateway cannot import it


NVIDIA = Vendor(
    module="sgmon.collect.gpu.nvidia_child",
    source="NVML",
    no_library="no NVIDIA driver found (libnvidia-ml.so.1)",
    remedies={
        4: "run sgmon as root, or as a user who may open /dev/nvidia*",
        9: "load the driver: sudo modprobe nvidia; then nvidia-smi must work",
        12: "on a GPU host install the NVIDIA driver; start a container with GPU access (docker run --gpus all)",
        15: "look for Xid in dmesg; the GPU needs a reset (nvidia-smi -r -i N) or a reboot",
        16: "nvidia-smi -r -i N, or a reboot",
        17: "in a container: restart it (the device cgroup lost its entries, often after systemctl daemon-reload)",
        18: "the driver was updated while loaded: reload the nvidia modules or reboot; restart containers",
    },
    look=_LOOK,
    package="nvidia-ml-py",
)
AMD = Vendor(
    module="sgmon.collect.gpu.amd_child",
    source="AMD SMI",
    no_library="AMD GPUs are here, but not their library (amdsmi, libamd_smi.so)",
    remedies={
        4: "run sgmon as root, or as a member of the groups video and render",
        9: "load the driver: sudo modprobe amdgpu; then amd-smi must work",
        12: "install ROCm's amd-smi-lib, and pip install 'sgmon[amd]' (or put /opt/rocm/share/amd_smi on PYTHONPATH)",
        15: "look for amdgpu in dmesg; the GPU needs a reset (amd-smi reset -G) or a reboot",
    },
    look="look for amdgpu in dmesg",
    package="'sgmon[amd]'",
)


def vendor_here(root: Path = Path("/")) -> Vendor:
    """AMD where its compute device is there and no NVIDIA driver is; NVIDIA else (it says itself what is missing)."""
    nvidia = (root / "dev/nvidiactl").exists() or (root / "proc/driver/nvidia").exists()
    return AMD if not nvidia and (root / "dev/kfd").exists() else NVIDIA
