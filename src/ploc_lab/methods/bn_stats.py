"""A control: batch norm that normalises by the batch, and no update at all."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import torch

from ploc_lab.methods.adapting import NOTHING_TO_ADAPT, check_rows
from ploc_lab.methods.norms import forget_running_statistics
from ploc_lab.methods.protocol import Card, Method, as_answer, check, outputs

if TYPE_CHECKING:
    from torch import nn

    from ploc_lab.methods.protocol import Answer, Rows, SourceInfo


class BatchStatistics(Method):
    """The forward pass of Tent, EATA and SAR without their learning: what the statistics alone do."""

    info = Card(
        "Batch statistics, no update",
        needs="network",
        changes="BatchNorm2d normalises by the batch; no parameter moves",
        at_one="each row is normalised by itself (instance norm)",
    )

    def __init__(self, model: nn.Module, source: SourceInfo) -> None:
        super().__init__(model, source)
        self.net = deepcopy(model)
        self.idle = not forget_running_statistics(self.net)

    def respond(self, x: Rows) -> Answer:
        """Answer by the batch's own statistics."""
        rows = torch.as_tensor(x, dtype=torch.float32)
        check_rows(rows)
        if self.idle:
            self.skip(NOTHING_TO_ADAPT)
        z = outputs(self.net, rows)[0]
        check(z)
        return as_answer(z)
