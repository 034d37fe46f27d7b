"""The border from torch to NumPy: `Engine` takes requests and gives frames; the rooms behind it are its own."""

from attnviz.engine.core import ComputationError, Engine

__all__ = ["ComputationError", "Engine"]
