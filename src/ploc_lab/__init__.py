"""The laboratory: every claim about PLOC proved on real data, against every rival."""
