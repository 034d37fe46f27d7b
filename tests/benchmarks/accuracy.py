"""What stands on the screen beside float64: weights, both overviews, and a single strong cell."""

import random
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from attnviz import colour, rendering
from attnviz.engine import Engine
from attnviz.figure.cells import LIGHT, paint_cells
from attnviz.inputs import open_source
from attnviz.spec import Pattern, RandomQK, View, Viewport, make_spec
from attnviz.tensor_files import describe_qk
from tests.benchmarks.arms import bound_line
from tests.benchmarks.painting import application

_LENGTH = 16_384
_SIDE = 256
_WINDOWS = 12
_LIMIT = 5e-6
_TRIALS = 240
_HEADS = 12
_STRONG = 1024


def accuracy(_repeats):
    """The largest absolute error of frames of 16,384 tokens against float64, for a random head and six made-up ones.

    Weights: the engine's frames of twelve random windows of 256 × 256 cells a head, at 1:1. Max and mean: twelve
    random rows of pixels a head of the whole map in 512 pixels, the mean times the cells of a pixel's side.
    """
    chosen = random.Random(0)  # noqa: S311 (places, not secrets)
    worst = {"weights": 0.0, "max": 0.0, "mean": 0.0}
    specs = [
        make_spec(RandomQK(length=_LENGTH), num_heads=1, d_out=64),
        make_spec(Pattern(length=_LENGTH, pattern="mixed"), num_heads=6, d_out=384),
    ]
    for spec in specs:
        with closing(Engine()) as engine:
            given = open_source(spec)
            for name, error in _overview_errors(engine, spec, given, chosen):
                worst[name] = max(worst[name], error)
            for _ in range(_WINDOWS):
                worst["weights"] = max(worst["weights"], _window_error(engine, spec, given, chosen))
    return [
        bound_line(f"accuracy-{name}", error, _LIMIT, unit="absolute error") for name, error in worst.items()
    ]  # fmt: skip


def _exact_rows(given, head, rows):
    """Causal weights (rows, L) in float64."""
    q, k = given.queries[head, rows.start : rows.stop].double(), given.keys[head].double()
    scores = q @ k.t() / 8
    future = torch.arange(_LENGTH) > torch.arange(rows.start, rows.stop)[:, None]
    return torch.softmax(scores.masked_fill_(future, -torch.inf), -1)


def _overview_errors(engine, spec, given, chosen):
    level = _LENGTH // 512
    pictures = {
        name: rendering.collect(engine, spec, View(pooling=name), Viewport(pixels=(512, 512)))
        for name in ("max", "mean")
    }
    for head in range(spec.num_heads):
        for _ in range(_WINDOWS):
            row = chosen.randrange(512)
            exact = _exact_rows(given, head, range(row * level, (row + 1) * level)).view(level, 512, level)
            for name, pooled in ("max", exact.amax((0, 2))), ("mean", exact.mean((0, 2))):
                frame = pictures[name].heads[head]
                assert frame.exact and frame.level == level  # noqa: PT018
                error = np.abs(frame.values[row] - pooled.numpy()).max()
                yield name, float(error) * (level if name == "mean" else 1)


def _window_error(engine, spec, given, chosen):
    first = chosen.randrange(_LENGTH - _SIDE)
    rows = (first, first + _SIDE)
    left = chosen.randrange(first + 1)
    cols = (left, left + _SIDE)
    picture = rendering.collect(engine, spec, View(), Viewport(pixels=(_SIDE, _SIDE), rows=rows, cols=cols))
    worst = 0.0
    for frame in picture.heads:
        assert (frame.rows, frame.cols, frame.level) == (rows, cols, 1)
        exact = _exact_rows(given, frame.head, range(*rows))[:, slice(*cols)]
        worst = max(worst, float(np.abs(frame.values - exact.numpy()).max()))
    return worst


def strong_cell(_repeats):
    """One cell of weight 1 among 1,024² of a thousandth, drawn 350 pixels wide: in how many of 240 trials it is seen.

    Queries and keys of a file: all zero but for one query and one key. Frames of the engine for 350 × 350 pixels,
    twelve heads at a time, from the kept matrix and from tiles in turn, are painted by `paint_cells` as on the screen
    and on paper. It is seen where a painted pixel within one of the cell's place has the last colour of the table.
    """
    held = application()
    strongest = int(colour.table("viridis")[-1]) & 0xFFFFFF
    chosen = random.Random(0)  # noqa: S311 (places, not secrets)
    seen = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_TRIALS // _HEADS):
            cells = [(chosen.randrange(_STRONG), chosen.randrange(_STRONG)) for _ in range(_HEADS)]
            path = Path(folder, f"strong-{number}.npz")
            _write_strong(path, cells)
            spec = make_spec(describe_qk(path), mask="none")
            with closing(Engine(dense_bytes=0) if number % 2 else Engine()) as engine:
                picture = rendering.collect(engine, spec, View(norm="linear"), Viewport(pixels=(350, 350)))
            seen += sum(_is_seen(frame, cell, strongest) for frame, cell in zip(picture.heads, cells, strict=True))
    del held
    return [
        bound_line("strong-cell", seen, _TRIALS, unit=f"of {_TRIALS} trials", holds=seen == _TRIALS)
    ]  # fmt: skip


def _write_strong(path, cells):
    queries = np.zeros((len(cells), _STRONG, 8), np.float32)
    keys = np.zeros_like(queries)
    for head, (row, col) in enumerate(cells):
        queries[head, row, 0] = keys[head, col, 0] = 20.0
    np.savez(path, q=queries, k=keys)


def _is_seen(frame, cell, strongest):
    side = 350
    image = QImage(side, side, QImage.Format.Format_RGB32)
    image.fill(0)
    painter = QPainter(image)
    paint_cells(painter, QRectF(0, 0, side, side), (0, _STRONG, 0, _STRONG), frame, LIGHT, numbers=False)
    painter.end()
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(side, side) & 0xFFFFFF
    row, col = (int((place + 0.5) * side / _STRONG) for place in cell)
    around = pixels[max(row - 1, 0) : row + 2, max(col - 1, 0) : col + 2]
    return bool((around == strongest).any())
