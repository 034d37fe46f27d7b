"""Pictures of weights that somebody has, in a process of their own: two lines of ours beside matplotlib's grid."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.benchmarks.arms import compared, interleaved

HEADS, TOKENS, FIGURES = 12, 128, 20
SIZE = (1920, 1080)

_OURS = """
import sys
import numpy as np
import attnviz
weights = np.load(sys.argv[1])["weights"]
for n, layer in enumerate(weights):
    attnviz.show(layer, path=f"{sys.argv[2]}/{n}.png")
"""
_PEER = """
import sys
import numpy as np
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
weights = np.load(sys.argv[1])["weights"]
for n, layer in enumerate(weights):
    figure, axes = plt.subplots(3, 4, figsize=(19.2, 10.8), dpi=100)
    for head, (place, one) in enumerate(zip(axes.ravel(), layer)):
        place.imshow(one)
        place.set_title(f"head {head}")
    figure.savefig(f"{sys.argv[2]}/{n}.png")
    plt.close(figure)
"""


def render(repeats):
    """One figure of 12 heads of 128 tokens, and 20 figures in one process, beside the same with matplotlib.

    Both read the same NPZ of float32 weights and write PNGs of 1920 × 1080. Python's start and all imports count, with
    warm file caches.
    """
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for goal, count, limit in ("render", 1, 1.0), ("render-20", FIGURES, 0.2):
            weights = folder / f"{goal}.npz"
            _write_weights(weights, count)
            arms = {}
            for arm, code in ("ours", _OURS), ("peer", _PEER):
                out = folder / f"{goal}-{arm}"
                out.mkdir()
                arms[arm] = partial(_run, code, weights, out)
            taken = interleaved(arms, repeats)
            for arm in arms:
                _check(folder / f"{goal}-{arm}", count)
            lines.append(compared(goal, taken["ours"], taken["peer"], limit, "matplotlib imshow", figures=count))
    return lines


def _write_weights(path, count):
    """``count`` layers of causal weights (layers, heads, tokens, tokens)."""
    import numpy as np

    scores = np.random.default_rng(0).standard_normal((count, HEADS, TOKENS, TOKENS), np.float32) * 2
    scores[..., np.triu(np.ones((TOKENS, TOKENS), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.savez(path, weights=weights / weights.sum(-1, keepdims=True))


def _run(code, weights, folder):
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    subprocess.run([sys.executable, "-c", code, str(weights), str(folder)], check=True, env=env)


def _check(folder, count):
    """That every picture is there, in the size that both are asked for."""
    from PIL import Image

    for n in range(count):
        with Image.open(folder / f"{n}.png") as picture:
            if picture.size != SIZE:
                raise RuntimeError(f"{folder.name}/{n}.png is {picture.size}")
