"""Pictures made up on any sheet, and what programs of others make of the files."""

import shutil
import subprocess
from contextlib import closing

import numpy as np
import pytest
from made_pictures import picture_of
from PySide6.QtGui import QImage

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.figure.formats.png import image_of
from attnviz.figure.sheet import PictureDrawing, lay_out
from attnviz.figures import Figure
from attnviz.spec import Paper, Text, View, Viewport, make_spec


def drawing_of(n, heads=1, *, paper=None, seed=0, view=None, **fields):
    """A drawing of random weights, its picture and its sheet."""
    paper = paper or Paper()
    picture = picture_of(n, heads, seed=seed, view=view, **fields)
    sheet = lay_out(picture.outline, picture.spec, picture.view, paper)
    return PictureDrawing(picture, sheet), picture, sheet


def busy_drawing(paper):
    """Heads with everything in their cells: numbers, hatching, crosses, dropped cells, sums that are off."""
    spec = make_spec(Text(text="The cat eats 猫 吃 鱼 today"), num_heads=2, dropout=0.4, training=True)
    view = View(stage="dropped_weights")
    with closing(Engine()) as engine:
        picture = rendering.collect(engine, spec, view, Viewport(pixels=(256, 256)))
    return PictureDrawing(picture, lay_out(picture.outline, spec, view, paper))


def sheet_of(outline, view, size, spec=None, **paper):
    """``view`` of ``outline`` on a sheet of ``size``."""
    return lay_out(outline, spec or make_spec(), view, Paper(width=size[0], height=size[1], **paper))


def rendered(picture, size, *, selected=None, **paper):
    """``picture`` on a sheet of ``size``, as an image."""
    paper = Paper(width=size[0], height=size[1], **paper)
    sheet = lay_out(picture.outline, picture.spec, picture.view, paper, picture=picture)
    return image_of(PictureDrawing(picture, sheet, selected=selected), sheet.paper)


def figure_of(spec, view=None, size=(1920, 1080), **paper):
    """The maps of ``spec`` on a sheet of ``size``."""
    return Figure(spec=spec, view=view or View(), paper=Paper(width=size[0], height=size[1], **paper))


def tool(name, package):
    """Skip where the program ``name`` is missing."""
    if shutil.which(name) is None:
        pytest.skip(f"{package} is missing")
    return name


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, timeout=100).stdout


def pixels_of(path):
    """The picture in a file as 0xAARRGGBB (height, width) uint32."""
    image = QImage(str(path)).convertToFormat(QImage.Format.Format_ARGB32)
    assert not image.isNull()
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width()).copy()


def by_rsvg(path, out, zoom=2):
    run(tool("rsvg-convert", "rsvg-convert"), "--zoom", str(zoom), "--unlimited", "-o", str(out), str(path))
    return pixels_of(out)


def by_poppler(path, out, dpi=192):
    run(tool("pdftoppm", "poppler"), "-png", "-singlefile", "-r", str(dpi), str(path), str(out.with_suffix("")))
    return pixels_of(out)


def largest_error(shown, wanted):
    """The largest difference of red, green or blue of two arrays of 0xffRRGGBB."""
    parts = [(one.astype(np.int64) >> np.array([[16], [8], [0]])) & 255 for one in (shown.ravel(), wanted.ravel())]
    return int(np.abs(parts[0] - parts[1]).max())


def apart(one, other):
    """How far two pictures of one size are apart: the mean, and the share of pixels that are by more than 96 of 255."""
    parts = [np.stack([shown >> shift & 255 for shift in (16, 8, 0)]).astype(int) for shown in (one, other)]
    largest = np.abs(parts[0] - parts[1]).max(axis=0)
    return float(largest.mean()), float((largest > 96).mean())


def middles(sheet, picture, place, zoom=1):
    """Pixels (x, y) of the middles of a map's cells on the sheet that is shown ``zoom`` times as large."""
    x, y, width, height = sheet.plan.panels[place].map_rect
    n_rows, n_cols = sheet.rows[1] - sheet.rows[0], sheet.cols[1] - sheet.cols[0]
    xs = (x + (np.arange(n_cols) + 0.5) * width / n_cols) * zoom
    ys = (y + (np.arange(n_rows) + 0.5) * height / n_rows) * zoom
    return xs.astype(int), ys.astype(int)
