"""PLOC."""
