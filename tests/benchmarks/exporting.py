"""Exported sheets of 3840 × 2160 pixels, beside pyqtgraph's own export and beside Pillow's writing alone."""

import os
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

REPEATS = 7
REST = 0.3
SIZE = (3840, 2160)


def export():
    """A PNG of 12 × 1,024 × 1,024 causal weights from a warm engine, beside the same arrays in ImageItems.

    Both begin with the arrays: ours pools, colours, lays out, paints and writes; pyqtgraph's items, which stand in a
    window, look their colours up again. Both show one linear scale: a logarithmic one, our default, gives both files
    more to compress, and pyqtgraph then takes three times as long.
    """
    import torch
    from PySide6.QtWidgets import QApplication

    from attnviz import rendering
    from attnviz.engine import Engine
    from attnviz.spec import RandomEmbeddings, View, Viewport, make_spec

    application = QApplication.instance() or QApplication(["benchmark"])
    torch.set_num_threads(1)
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12)
    view, taken = View(norm="linear"), {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as folder, closing(Engine()) as engine:
        window, items = _items(rendering.collect(engine, spec, view, Viewport(pixels=(1024, 1024))).heads)
        paths = {arm: Path(folder, f"{arm}.png") for arm in taken}

        def run(arm):
            start = time.perf_counter()
            if arm == "ours":
                rendering.write_image(paths[arm], spec, view, SIZE, engine)
            else:
                _peer_export(window, paths[arm])
            return time.perf_counter() - start

        for repeat in range(-1, REPEATS):  # the first of each warms it up
            for arm in ("ours", "peer") if repeat % 2 else ("peer", "ours"):
                rendering.collect(engine, spec, view, Viewport(pixels=(64, 64)))  # lets go of the pixels of a sheet
                application.processEvents()
                time.sleep(REST)
                for item in items:
                    item.setImage(item.image, autoLevels=False)  # lets go of the colours
                seconds = run(arm)
                if repeat >= 0:
                    taken[arm].append(seconds)
        sizes = {arm: path.stat().st_size for arm, path in paths.items()}
    window.close()
    ours, peer = (statistics.median(seconds) for seconds in taken.values())
    ratio = statistics.median(one / other for one, other in zip(*taken.values(), strict=True))
    return {
        "goal": "export", "ours_ms": round(ours * 1000, 1), "peer_ms": round(peer * 1000, 1),
        "ratio": round(ratio, 2), "limit": 0.3, "ours_bytes": sizes["ours"], "peer_bytes": sizes["peer"],
    }  # fmt: skip


def export_png(repeats):
    """25 maps of 1,024 tokens, their frames at hand: pooled, drawn and written, beside Pillow's writing of the image.

    Pillow, with its own settings, is given the finished image. Both files are kept in the same folder.
    """
    import numpy as np
    from PIL import Image
    from PySide6.QtWidgets import QApplication

    from attnviz import rendering
    from attnviz.engine import Engine
    from attnviz.figure.fonts import load_fonts
    from attnviz.figure.formats import write_drawing
    from attnviz.figure.formats.png import image_of
    from attnviz.figure.sheet import PictureDrawing, lay_out
    from attnviz.spec import Paper, RandomEmbeddings, View, Viewport, make_spec
    from tests.benchmarks.arms import compared, interleaved

    _application = QApplication.instance() or QApplication(["benchmark"])
    load_fonts()
    spec, view = make_spec(RandomEmbeddings(length=1024), num_heads=25), View()
    paper = Paper(width=SIZE[0], height=SIZE[1])
    with tempfile.TemporaryDirectory() as folder, closing(Engine()) as engine:
        picture = rendering.collect(engine, spec, view, Viewport(pixels=(1024, 1024)))
        paths = {arm: Path(folder, f"{arm}.png") for arm in ("ours", "peer")}

        def drawing():
            return PictureDrawing(picture, lay_out(picture.outline, spec, view, paper))

        image = image_of(drawing(), paper)
        pixels = np.frombuffer(image.constBits(), np.uint8).reshape(SIZE[1], SIZE[0], 4)[..., 2::-1]
        drawn = Image.fromarray(np.ascontiguousarray(pixels))
        taken = interleaved(
            {
                "ours": lambda: write_drawing(paths["ours"], drawing(), paper, "{}"),
                "peer": lambda: drawn.save(paths["peer"]),
            },
            repeats,
        )
        sizes = {f"{arm}_bytes": path.stat().st_size for arm, path in paths.items()}
    return [compared("export-png", taken["ours"], taken["peer"], 1.5, "Pillow save", **sizes)]


def _items(heads):
    """A shown window of PlotItems, four across, and their ImageItems: a head's array each, with a lookup table."""
    import numpy as np
    import pyqtgraph as pg
    from PySide6.QtWidgets import QApplication

    from attnviz import colour

    table = np.stack([colour.table("viridis") >> shift & 255 for shift in (16, 8, 0)], 1).astype(np.uint8)
    window, items = pg.GraphicsLayoutWidget(size=(1600, 900)), []
    for place, frame in enumerate(heads):
        plot = window.addPlot(row=place // 4, col=place % 4, title=f"head {place}")
        plot.invertY(True)
        levels = (frame.scale.low, frame.scale.high)
        array = np.array(frame.values, np.float32)
        items.append(pg.ImageItem(array, lut=table, levels=levels, axisOrder="row-major"))
        plot.addItem(items[-1])
    window.show()
    QApplication.processEvents()
    return window, items


def _peer_export(window, path):
    from pyqtgraph.exporters import ImageExporter

    exporter = ImageExporter(window.scene())
    exporter.parameters()["width"] = SIZE[0]
    exporter.export(str(path))
