"""Declare torchvision's compiled ops, which do not load beside this torch, so that it imports. Run by the venv's Python."""

import sysconfig
from pathlib import Path

SCHEMAS = """import torch

_lib = torch.library.Library("torchvision", "FRAGMENT")
for _schema in (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor i, Tensor r, float s, SymInt ph, SymInt pw, int sr, bool a) -> Tensor",
):
    _lib.define(_schema)
"""

site = Path(sysconfig.get_paths()["purelib"]) / "torchvision"
(site / "_op_schemas.py").write_text(SCHEMAS)
extension = site / "extension.py"
text = extension.read_text()
if "_op_schemas" not in text:
    extension.write_text("from . import _op_schemas  # noqa\n" + text)
