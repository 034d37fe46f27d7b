import builtins
import sys

import numpy as np
import pytest
from paper_drawings import drawing_of, largest_error, middles
from PIL import Image
from PySide6.QtGui import QImage

from attnviz import colour
from attnviz.figure.formats.gif import write_animation
from attnviz.figure.formats.png import image_of
from attnviz.files import FileProblem
from attnviz.spec import Paper, SpecError

pytestmark = pytest.mark.usefixtures("qapp")


def image_with(pixels):
    pixels = np.ascontiguousarray(pixels, np.uint32)
    return QImage(pixels.data, pixels.shape[1], pixels.shape[0], QImage.Format.Format_RGB32).copy()


def random_images(count, n_colours, size=(40, 61), seed=0):
    """Arrays of 0xffRRGGBB, the colours of them all together."""
    generator = np.random.default_rng(seed)
    colours = generator.choice(1 << 24, n_colours, replace=False).astype(np.uint32) | np.uint32(0xFF000000)
    return [colours[generator.integers(0, n_colours, size)] for _ in range(count)]


def frames_of(path):
    """Each frame of a file as 0xffRRGGBB, how long it is shown in ms, and what the file says of itself."""
    shown, times = [], []
    with Image.open(path) as file:
        told = dict(file.info)
        for n in range(file.n_frames):
            file.seek(n)
            parts = np.asarray(file.convert("RGB")).astype(np.uint32)
            shown.append(np.uint32(0xFF000000) | parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2])
            times.append(file.info["duration"])
    return shown, times, told


@pytest.mark.parametrize("n_colours", [1, 2, 100, 256])
def test_up_to_256_colours_are_kept_in_every_frame(tmp_path, n_colours):
    arrays = random_images(5, n_colours)
    write_animation(tmp_path / "a.gif", map(image_with, arrays), 0.1, "{}")
    shown, _, _ = frames_of(tmp_path / "a.gif")
    if n_colours > 1:
        np.testing.assert_array_equal(shown, arrays)
    else:  # frames that are alike are one
        np.testing.assert_array_equal(shown[0], arrays[0])


def test_of_more_colours_the_frequent_ones_are_kept(tmp_path):
    rare = random_images(3, 3000, seed=1)
    often = random_images(3, 200, seed=2)
    arrays = [
        np.where(np.random.default_rng(3).random(one.shape) < 0.1, few, one)
        for one, few in zip(often, rare, strict=True)
    ]
    write_animation(tmp_path / "a.gif", map(image_with, arrays), 0.1, "{}")
    shown, _, _ = frames_of(tmp_path / "a.gif")
    for drawn, one in zip(shown, arrays, strict=True):
        kept = np.isin(one, np.concatenate(often))
        assert (drawn[kept] == one[kept]).all()
        assert 0 < largest_error(drawn[~kept], one[~kept]) < 110  # the nearest of 256 in a cube of 256³


@pytest.mark.parametrize("upright", [False, True])
def test_areas_have_their_colours_among_letters_edges(tmp_path, upright):
    """Two colour bars, whose 512 steps are narrow, and 3000 colours of single pixels, each of them more frequent."""
    bars = np.concatenate([colour.table("viridis"), colour.table(colour.DIVERGING_TABLE)]).repeat(7)[None].repeat(2, 0)
    (edges,) = random_images(1, 3000, (30, bars.shape[1]))
    sheet = np.concatenate([edges, bars])
    arrays = [sheet.T if upright else sheet, (sheet[:, ::-1].T if upright else sheet[:, ::-1])]
    for name in "a.gif", "b.gif":
        write_animation(tmp_path / name, map(image_with, arrays), 0.1, "{}")
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()
    for drawn, one in zip(frames_of(tmp_path / "a.gif")[0], arrays, strict=True):
        shown, wanted = (drawn.T, one.T) if upright else (drawn, one)
        assert largest_error(shown[30:], wanted[30:]) <= 4
        assert largest_error(shown[:30], wanted[:30]) < 160  # of the 3000 a few dozen are left


def test_cells_have_their_own_colours(tmp_path):
    made = [drawing_of(12, 2, paper=Paper(width=640, height=360), seed=seed) for seed in (0, 10, 20)]
    images = [image_of(drawing, sheet.paper) for drawing, _, sheet in made]
    write_animation(tmp_path / "a.gif", images, 0.5, "{}")
    shown, times, told = frames_of(tmp_path / "a.gif")
    assert times == [500, 500, 500]
    assert told["loop"] == 0
    for drawn, (_, picture, sheet) in zip(shown, made, strict=True):
        for place, frame in enumerate(picture.heads):
            xs, ys = middles(sheet, picture, place)
            assert largest_error(drawn[np.ix_(ys - 6, xs - 6)], frame.rgb) <= 4


def test_what_is_transparent_is_shown_on_white(tmp_path):
    drawing, _, sheet = drawing_of(3, paper=Paper(width=320, height=200, theme="transparent"))
    write_animation(tmp_path / "a.gif", [image_of(drawing, sheet.paper)], 0.5, "{}")
    assert frames_of(tmp_path / "a.gif")[0][0][0, 0] == 0xFFFFFFFF


def test_times_comment_and_bytes(tmp_path):
    arrays, text = random_images(3, 9), '{"text": "' + "fish " * 999 + '"}'
    shares = []
    for name in "a.gif", "b.gif":
        write_animation(tmp_path / name, map(image_with, arrays), (0.5, 1, 0.126), text, shares.append, count=3)
    _, times, told = frames_of(tmp_path / "a.gif")
    assert times == [500, 1000, 130]
    assert told["comment"] == text.encode()
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()
    first = shares[: len(shares) // 2]
    assert first == sorted(first)
    assert len(first) > 3 * 3  # drawn, counted, painted
    assert first[-1] == 1


@pytest.mark.parametrize("share", [0.3, 0.75, 0.95])
def test_a_step_ends_it_wherever_it_is_and_leaves_no_half_file(tmp_path, share):
    class StoppedError(Exception):
        pass

    def step(done):
        if done >= share:
            raise StoppedError

    with pytest.raises(StoppedError):
        write_animation(tmp_path / "a.gif", map(image_with, random_images(9, 9)), 0.5, "{}", step, count=9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("images", "seconds", "said"),
    [
        ([], 0.5, "there are no frames"),
        (random_images(2, 2), 0.001, "seconds is 0.001: give 0.02 to 655 a frame"),
        (random_images(2, 2), float("nan"), "seconds is nan"),
        (random_images(2, 2), (0.5,), "seconds has 1 numbers for 2 frames"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path, images, seconds, said):
    with pytest.raises(SpecError, match=said):
        write_animation(tmp_path / "a.gif", map(image_with, images), seconds, "{}")
    assert list(tmp_path.iterdir()) == []


def test_frames_of_two_sizes_are_a_mistake(tmp_path):
    arrays = [*random_images(1, 2), *random_images(1, 2, (40, 60))]
    with pytest.raises(ValueError, match="frame 1 has another size"):
        write_animation(tmp_path / "a.gif", map(image_with, arrays), 0.5, "{}")


def test_without_pillow_one_sentence_says_what_would_do(tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.partition(".")[0] == "PIL":
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(SpecError, match=r'a GIF needs Pillow: pip install "attnviz\[anim\]"'):
        write_animation(tmp_path / "a.gif", map(image_with, random_images(1, 2)), 0.5, "{}")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileProblem, match="does not exist"):
        write_animation(tmp_path / "none" / "a.gif", map(image_with, random_images(2, 2)), 0.5, "{}")
