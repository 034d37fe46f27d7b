"""Pictures that follow one another, as a GIF that runs for ever. Needs Pillow, which comes with the extra *anim*."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter

from attnviz.figure.drawing import Step
from attnviz.files import write_whole
from attnviz.spec import MAX_PIXELS, SpecError

SUFFIX: Final = ".gif"
_MOST_COLOURS: Final = 256
_CHOSEN: Final = 224
"""So many are of areas, or else the most frequent; the others are chosen so that none that is left out, such as that of
one bright pixel, is far from all of them."""

_NEAR: Final = 4
"""Of 255: an area's colour that is no further than this from one of the palette needs no place of its own."""

_RUN: Final = 5
"""Pixels of one colour in a line that make an area: a cell, a step of a colour bar. Edges of letters, which have most
of the colours, are shorter."""

_SHORTEST, _LONGEST = 0.02, 655.0  # browsers slow down what is shorter; GIF has 16 bits of hundredths
_ALL_COLOURS: Final = 1 << 24
_AT_A_TIME: Final = 4096
_PREPARED, _COUNTED = 0.7, 0.2  # of the time, until all images and all their colours are known


def write_animation(
    path: Path, images: Iterable[QImage], seconds: float | Sequence[float], remembered: str,
    step: Step = lambda _done: None, *, count: int | None = None,
) -> None:  # fmt: skip
    """Write ``images`` of one size as a GIF, each shown for ``seconds``, or for its own of them.

    All share one palette. Up to 256 colours are kept exactly. Of more, no area's is off by more than 4 of 255 where
    that can be had: a place goes to each that has none so near, the larger areas first. Then the most frequent are
    kept, and letters' edges, which are most of them, take the nearest. What is transparent is shown on white.
    ``remembered`` is the comment. ``count`` says how many images there will be, which ``step`` needs to tell a share of
    them. Whatever ends it, an older file stays as it was. Any thread. Raises `SpecError` without Pillow, without
    images, for times that cannot be and for more pixels than memory should hold, and `files.FileProblem`.
    """
    image_module = _pillow()
    frames: list[npt.NDArray[np.uint32]] = []
    for image in images:
        frames.append(_pixels(image))
        if frames[-1].shape != frames[0].shape:
            raise ValueError(f"frame {len(frames) - 1} has another size than the first: {image.size()}")
        if len(frames) * frames[0].size > MAX_PIXELS:
            raise SpecError("size", f"{len(frames)} frames of this size are more than an animation holds: give less")
        step(_PREPARED * min(len(frames) / count, 1.0) if count else 0.0)
    if not frames:
        raise SpecError("frames", "there are no frames to make an animation of")
    times = _times(seconds, len(frames))
    palette, places = _palette(frames, lambda done: step(_PREPARED + _COUNTED * done))
    height, width = frames[0].shape

    def painted() -> Iterator[Any]:
        for done, pixels in enumerate(frames):
            step(_PREPARED + _COUNTED + (1 - _PREPARED - _COUNTED) * done / len(frames))
            image = image_module.frombytes("P", (width, height), places[pixels].tobytes())
            image.putpalette(palette.tobytes())
            yield image

    def save(file: BinaryIO) -> None:
        others = painted()
        try:
            next(others).save(
                file, format="GIF", save_all=True, append_images=others, duration=times, loop=0, optimize=False,
                comment=remembered.encode(),
            )  # fmt: skip
        except (OverflowError, struct.error):  # equal pictures become one, as long as all of them
            raise SpecError("seconds", f"equal pictures would stand for over {_LONGEST:g} s: give less") from None
        step(1.0)  # the last chance to end it: from here on it has its name

    write_whole(path, save)


def check_animation(count: int, size: tuple[int, int]) -> None:
    """Raise `SpecError` where so many pictures of ``size`` cannot be written: without Pillow, or for their pixels."""
    _pillow()
    if count * size[0] * size[1] > MAX_PIXELS:
        raise SpecError("size", f"{count} pictures of {size[0]}x{size[1]} are more than an animation holds: give less")


def _pillow() -> Any:
    try:
        from PIL import Image  # noqa: PLC0415 (an extra)
    except ImportError:
        raise SpecError("path", 'a GIF needs Pillow: pip install "attnviz[anim]"') from None
    return Image


def _times(seconds: float | Sequence[float], count: int) -> list[int]:
    """Milliseconds of each frame, whole hundredths of a second."""
    each = [seconds] * count if isinstance(seconds, int | float) else list(seconds)
    if len(each) != count:
        raise SpecError("seconds", f"seconds has {len(each)} numbers for {count} frames: give one, or one a frame")
    for time in each:
        if not (math.isfinite(time) and _SHORTEST <= time <= _LONGEST):
            raise SpecError("seconds", f"seconds is {time:g}: give {_SHORTEST} to {_LONGEST:g} a frame, such as 0.5")
    return [10 * round(100 * time) for time in each]


def _pixels(image: QImage) -> npt.NDArray[np.uint32]:
    """``image`` as 0x00RRGGBB (height, width)."""
    if image.hasAlphaChannel():
        ground = QImage(image.size(), QImage.Format.Format_RGB32)
        ground.fill(Qt.GlobalColor.white)
        painter = QPainter(ground)
        painter.drawImage(0, 0, image)
        painter.end()
        image = ground
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), "<u4").reshape(image.height(), image.bytesPerLine() // 4)
    return rows[:, : image.width()] & np.uint32(0xFFFFFF)


def _palette(
    frames: Sequence[npt.NDArray[np.uint32]], step: Step
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Red, green and blue (n, 3) of at most 256 colours, and the place of every colour's nearest among them."""
    counts = np.zeros(_ALL_COLOURS, np.int64)
    for done, pixels in enumerate(frames):
        step(done / len(frames))
        counts += np.bincount(pixels.ravel(), minlength=_ALL_COLOURS)
    found = np.flatnonzero(counts)
    kept = found[np.argsort(-counts[found], kind="stable")]
    if len(kept) > _MOST_COLOURS:
        kept = _chosen(kept, _in_areas(frames, kept))
    colours, others = _parts(kept), np.setdiff1d(found, kept)
    places = np.zeros(_ALL_COLOURS, np.uint8)
    places[kept] = np.arange(len(kept))
    for start in range(0, len(others), _AT_A_TIME):
        some = others[start : start + _AT_A_TIME]
        places[some] = _away(some, kept).argmin(axis=1)
    return colours, places


def _in_areas(frames: Sequence[npt.NDArray[np.uint32]], colours: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Which of ``colours`` (n,) have `_RUN` pixels alike side by side, or one below the other."""
    found = np.zeros(_ALL_COLOURS, bool)
    for pixels in frames:
        for lines in (pixels, pixels.T):
            first = lines[:, : 1 - _RUN]
            run = np.ones(first.shape, bool)
            for step in range(1, _RUN):
                run &= first == lines[:, step : step + first.shape[1]]
            found[first[run]] = True
    return found[colours]


def _chosen(colours: npt.NDArray[np.intp], in_areas: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """The palette, of ``colours`` (n,), the most frequent first, of which some (n,) are those of areas."""
    kept = _covering(colours[in_areas])
    missing = colours[~np.isin(colours, kept)]
    kept = np.concatenate([kept, missing[: _CHOSEN - len(kept)]])
    return np.concatenate([kept, _far_from(kept, np.setdiff1d(missing, kept))])


def _covering(colours: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The first ones of ``colours`` that are not `_NEAR` one before them, `_CHOSEN` at most."""
    kept: list[np.intp] = []
    while len(colours) and len(kept) < _CHOSEN:
        kept.append(colours[0])
        colours = colours[_away(colours, kept[-1:])[:, 0] > _NEAR**2]
    return np.array(kept, np.intp)


def _far_from(kept: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """What fills the palette: of ``others``, each time the one that is furthest from all that are there."""
    starts = range(0, len(others), _AT_A_TIME)
    away = np.concatenate([_away(others[start : start + _AT_A_TIME], kept).min(axis=1) for start in starts])
    chosen = []
    for _ in range(_MOST_COLOURS - len(kept)):
        chosen.append(others[away.argmax()])
        away = np.minimum(away, _away(others, chosen[-1:])[:, 0])
    return np.array(chosen)


def _away(some: npt.NDArray[np.intp], others: npt.NDArray[np.intp] | list[np.intp]) -> npt.NDArray[np.int32]:
    """The squares of the distances between 0x00RRGGBB ``some`` (n,) and ``others`` (m,), (n, m)."""
    squares: npt.NDArray[np.int32] = ((_parts(some)[:, None].astype(np.int32) - _parts(np.array(others))) ** 2).sum(
        axis=2
    )
    return squares


def _parts(colours: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
    return np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], axis=1).astype(np.uint8)
