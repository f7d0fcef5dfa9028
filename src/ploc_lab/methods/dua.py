"""DUA (Mirza et al., CVPR 2022): batch norm's running statistics follow the stream, ever more slowly."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch import nn

from ploc_lab.methods.adapting import NOTHING_TO_ADAPT, check_rows, settled
from ploc_lab.methods.augment import views
from ploc_lab.methods.protocol import Card, Method

if TYPE_CHECKING:
    from ploc_lab.methods.protocol import Answer, Rows, SourceInfo


class DUA(Method):
    """Of each of the first `rows` rows BatchNorm2d sees `views` augmentations, with momentum rho + 0.005.

    rho starts at 0.1 and is multiplied by `decay` first; a batch's rows are taken in one by one, then it is
    answered by the running statistics. No parameter moves; a network without batch norm is left as it is.
    """

    info = Card(
        "DUA",
        needs="network",
        changes="running statistics of BatchNorm2d; no parameter moves",
        at_one="native: a row's augmentations are the batch",
    )

    def __init__(
        self,
        model: nn.Module,
        source: SourceInfo,
        *,
        views: int = 64,
        decay: float = 0.94,
        rows: int = 80,
        seed: int = 0,
    ) -> None:
        super().__init__(model, source, views=views, decay=decay, rows=rows, seed=seed)
        self.net, self.views, self.decay, self.rows = deepcopy(model), views, decay, rows
        self.norms = [m for m in self.net.modules() if isinstance(m, nn.BatchNorm2d)]
        self.rho, self.chance = 0.1, torch.Generator().manual_seed(seed)

    @property
    def state_size(self) -> int:
        """The running means and variances, and rho."""
        return sum(2 * norm.num_features for norm in self.norms) + bool(self.norms)

    def respond(self, x: Rows) -> Answer:
        """Take the rows in, then answer them."""
        batch = torch.as_tensor(x, dtype=torch.float32)
        check_rows(batch)
        for row in batch:
            if not self.norms:
                self.skip(NOTHING_TO_ADAPT)
            elif self.steps < self.rows:
                self._take_in(row)
                self.step()
        return settled(self, self.net, batch)

    def _take_in(self, row: torch.Tensor) -> None:
        self.rho *= self.decay
        for norm in self.norms:
            norm.momentum = self.rho + 0.005
            norm.train()
        with torch.no_grad():
            self.net(views(row, self.views, self.chance))
        for norm in self.norms:
            norm.eval()
