"""Methods whose answers do not depend on how the stream is cut into batches."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ploc_lab.methods.protocol import Answer, Floats, OutputMethod, as_answer, check


class BatchFree(OutputMethod):
    """A row is answered from itself and the rows before it alone, so a replay is one long batch."""

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:
        """Answer the stream in one pass, whatever `batch` says."""
        if batch < 1:
            raise ValueError(f"batch size must be at least 1, got {batch}")
        z = np.asarray(z, dtype=np.float64)
        check(z)
        return self.finite(self.stream(z, f), as_answer(z)) if len(z) else as_answer(z)

    def stream(self, z: Floats, f: NDArray[Any] | None, /) -> Answer:
        """Answer rows that came one by one."""
        return self.answer(z, f)
