"""An exported sheet beside pyqtgraph's own export: twelve maps of 1,024 tokens on 3840 × 2160 pixels."""

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
