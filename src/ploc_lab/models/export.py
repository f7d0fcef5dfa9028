"""A checkpoint as an ONNX file: rows `x` (n, d) in, `logits` (n, 1) or (n, K) out."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from ploc_lab.files import whole

if TYPE_CHECKING:
    from pathlib import Path

    from ploc_lab.models.checkpoint import Checkpoint


def to_onnx(checkpoint: Checkpoint, path: Path) -> None:
    """Write the network so that any ONNX runtime gives its logits; any number of rows at a time.

    The file goes behind `ploc.onnx` as it is.
    """
    if checkpoint.net is None:
        raise ValueError(f"{checkpoint.backbone} is no network: only networks are exported")
    example = torch.zeros(2, checkpoint.card["d"])
    with whole(path) as temporary, warnings.catch_warnings():
        # The exporter of torch.export needs onnxscript; the pinned torch still has this one.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "Constant folding", UserWarning)  # what it can't fold, it computes
        torch.onnx.export(
            checkpoint.net,
            (example,),
            temporary,
            dynamo=False,
            input_names=["x"],
            output_names=["logits"],
            dynamic_axes={"x": {0: "n"}, "logits": {0: "n"}},
        )
