"""The study: the paper's experiments as grids of cells, what runs them, what sums them up."""
