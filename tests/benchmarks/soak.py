"""Thousands of pans, zooms and edits in the real window: memory, and whether a frame that is old is ever painted."""

import random
import statistics
from collections import Counter
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from attnviz.engine import Engine
from attnviz.frames import CellClass, Frame
from attnviz.session import Cell
from attnviz.spec import RandomQK, edited, make_spec
from tests.benchmarks.arms import resident, short
from tests.benchmarks.window import rest, settle, window_on

_TOKENS, _HEADS = 600, 2
_SIZE = (1000, 700)
_MASKS = ("none", "three-step", "neg-inf")
_NORMS = ("auto", "linear", "per-head", "per-row", "percentile")
_LEAST = 0.02  # of a map: fewer pixels of a colour are lines and letters that cover it
_SAMPLES = 100


def stamp(generation):
    """A colour that says a generation: 14 bits of it and 10 that check them, so that other colours are none."""
    number = generation & 0x3FFF
    return 0xFF000000 | number << 10 | (number * 0x9E5 + 0x1A7 & 0x3FF)


def stamped(colour):
    """The generation (modulo 2¹⁴) of a painted colour, or None."""
    number = colour >> 10 & 0x3FFF
    return number if stamp(number) == colour | 0xFF000000 else None


class _Stamping:
    """An engine in tiles whose frames are painted in the colour of their generation, every cell ordinary."""

    def __init__(self):
        self._engine = Engine(dense_bytes=0, spare_cores=1)

    def devices(self):
        return self._engine.devices()

    def stream(self, request, cancelled):
        for message in self._engine.stream(request, cancelled):
            yield _stamp(message) if isinstance(message, Frame) else message

    def probe(self, probe):
        return self._engine.probe(probe)

    def row_story(self, question):
        return self._engine.row_story(question)

    def close(self):
        self._engine.close()


def _stamp(frame):
    rgb = np.full(frame.rgb.shape, stamp(frame.generation), np.uint32)
    return replace(frame, rgb=rgb, classes=np.full(frame.classes.shape, int(CellClass.ORDINARY), np.uint8))


class _Watch:
    """Looks at what is painted. An epoch is a run of generations of one spec and view; a panel never goes back in it.

    Old colours may stay until the first frame of a new epoch is painted in their panel (the status line says so), then
    never again, not beside it either; and nothing is of a generation that was not asked for yet.
    """

    def __init__(self, program):
        self._program = program
        self._epochs, self._epoch, self._last = {}, 0, None
        self._painted = {}
        self.looks = self.unread = self.backdrops = self.stale = 0
        self.ages = Counter()
        self.first = ""

    def note(self):
        """Note the generation that has begun."""
        session = self._program.session
        now = session.snapshot()
        if (now.spec, now.view) != self._last:
            self._last = now.spec, now.view
            self._epoch += 1
        self._epochs[session.generation & 0x3FFF] = self._epoch

    def look(self):
        heatmaps = self._program.window.heatmaps
        image = heatmaps.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)[:, : image.width()]
        for panel in heatmaps._panels:
            self._look_at(panel, pixels)

    def _look_at(self, panel, pixels):
        box = QRectF(*panel.place.map_rect).toAlignedRect()
        colours, counts = np.unique(
            pixels[box.top() : box.top() + box.height(), box.left() : box.left() + box.width()], return_counts=True
        )
        seen = {stamped(int(colour)) for colour in colours[counts >= _LEAST * counts.sum()]} - {None}
        self.looks += 1
        if not seen:
            self.unread += 1
            return
        epochs = {self._epochs.get(generation, self._epoch + 1) for generation in seen}
        before = self._painted.get(panel.name, 0)
        wrong = min(epochs) < before or len(epochs) > 1 or max(epochs) > self._epoch
        sharp = self._epochs.get(panel.frame.generation & 0x3FFF, 0) if panel.frame is not None else max(epochs)
        behind = wrong and before <= sharp <= self._epoch  # then it is the whole map behind the sharp part that is old
        self.backdrops += behind
        self.stale += wrong and not behind
        if wrong and not self.first:
            self.first = f"{panel.name} painted epochs {sorted(epochs)} after {before}, asked for {self._epoch}"
        self.ages[self._epoch - max(epochs)] += 1
        self._painted[panel.name] = max(epochs)


def soak(count):
    """``count`` random pans, zooms and edits in the window on a map of 600 tokens × 2 heads that is computed in tiles.

    Frames are painted in a colour that says their generation. After each gesture the event loop runs for 0 to 12 ms,
    the panels are painted and their pixels are read. Stale: a panel that shows colours of an older spec or view than
    it has shown before, of two at once, or of one that was not asked for; told apart is whether the sharp frame is
    old or the whole map that stands behind it. Memory: resident bytes, a hundred samples;
    the median of the last tenth beside that of the second.
    """
    chosen = random.Random(0)  # noqa: S311 (gestures, not secrets)
    spec = make_spec(RandomQK(length=_TOKENS), num_heads=_HEADS, d_out=32)
    samples = []
    with window_on(spec, _Stamping, _SIZE) as program:
        settle(program)
        program.controller.toggle_numbers()
        watch = _Watch(program)
        program.controller.snapshot_changed.connect(lambda _: watch.note())
        watch.note()
        every = max(count // _SAMPLES, 1)
        gestures = Counter()
        for number in range(count):
            gestures[_gesture(program, chosen)] += 1
            wait = chosen.choice((0, 0, 1, 4, 12))
            rest(wait / 1000) if wait else QApplication.processEvents()
            watch.look()
            if number % every == 0:
                samples.append(resident("VmRSS"))
        settle(program)
        watch.look()
        last = {frame.generation for frame in program.session.snapshot().picture.heads}
        generations = program.session.generation
    tenth = max(len(samples) // 10, 1)
    early, late = statistics.median(samples[tenth : 2 * tenth] or samples), statistics.median(samples[-tenth:])
    return [
        {
            "goal": "soak-frames", "verdict": "misses" if watch.stale or watch.backdrops else "holds",
            "stale_frames": watch.stale, "stale_backdrops": watch.backdrops, "panels_looked_at": watch.looks,
            "unread": watch.unread, "generations": generations, "last_is_wanted": last == {generations},
            "epochs_behind": dict(sorted(watch.ages.items())), "first_wrong": watch.first, "gestures": dict(gestures),
        },
        {
            "goal": "soak-memory", "second_tenth_mb": short(early / 1e6), "last_tenth_mb": short(late / 1e6),
            "growth_mb": short((late - early) / 1e6), "most_mb": short(max(samples) / 1e6), "gestures": count,
        },
    ]  # fmt: skip


def _gesture(program, chosen):
    """One random gesture; its kind."""
    heatmaps, controller = program.window.heatmaps, program.controller
    kind = chosen.choice(("pan", "pan", "zoom", "zoom", "go to", "whole", "edit", "edit", "view", "hover", "select"))
    cell = Cell(chosen.randrange(_TOKENS), chosen.randrange(_TOKENS))
    match kind:
        case "pan":
            heatmaps.pan(*chosen.choice(((1, 0), (-1, 0), (0, 1), (0, -1))))
        case "zoom":
            chosen.choice((heatmaps.zoom_in, heatmaps.zoom_in, heatmaps.zoom_out))()
        case "go to":
            heatmaps.go_to(cell)
        case "whole":
            heatmaps.zoom_all()
        case "edit":
            changes = chosen.choice((
                {"seed": chosen.randrange(4)}, {"mask": chosen.choice(_MASKS)},
                {"dropout": chosen.choice((0.0, 0.1, 0.5))}, {"scale": chosen.choice((0.1, 0.2, 0.5))},
            ))  # fmt: skip
            controller.edit_spec(edited(controller.wanted()[0], **changes))
        case "view":
            _, view = controller.wanted()
            norm, pooling = chosen.choice(_NORMS), chosen.choice(("max", "mean"))
            controller.edit_view(type(view)(norm=norm, pooling=pooling, stage=view.stage))
        case "hover":
            controller.hover(chosen.choice((cell, None)))
        case "select":
            controller.select(cell)
    return kind
