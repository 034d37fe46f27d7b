import io
import struct
import threading
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_drawings import drawing_of, largest_error, middles, pixels_of
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from attnviz.figure.formats import SUFFIXES, png, write_drawing
from attnviz.figure.plots import Curve, Mark, Plot, paint_plot
from attnviz.figure.styles import style_of_theme
from attnviz.files import FileProblem
from attnviz.spec import Paper, SpecError

pytestmark = pytest.mark.usefixtures("qapp")

SIZES = [(17, 16), (1001, 333), (3840, 2160)]


def chunks(data):
    """Kind and content of each chunk, its checksum checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place = 8
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length)[0] == zlib.crc32(kind + content)
        yield kind, content
        place += 12 + length


def texts(data):
    """Every iTXt of a file by keyword, as a reader other than Qt would find it."""
    found = {}
    for kind, content in chunks(data):
        if kind == b"iTXt":
            keyword, rest = content.split(b"\0", 1)
            squeezed, _language, _keyword, body = rest[0], *rest[2:].split(b"\0", 2)
            found[keyword.decode("latin-1")] = (zlib.decompress(body) if squeezed else body).decode()
    return found


def image_of(size, n_colours, seed=0, layout=QImage.Format.Format_RGB32):
    """A random picture of bars, so that rows are like their neighbours and unlike them."""
    generator = np.random.default_rng(seed)
    opaque = layout == QImage.Format.Format_RGB32
    colours = generator.integers(0, 1 << 32, n_colours, np.uint32) | np.uint32(0xFF000000 if opaque else 0)
    image = QImage(*size, layout)
    pixels = np.frombuffer(image.bits(), np.uint32).reshape(size[1], size[0])
    pixels[:] = colours[generator.integers(0, n_colours, (size[1], size[0]))]
    pixels[size[1] // 3 : size[1] // 2] = pixels[size[1] // 3]
    return image


def written(image, *, large_cells, **told):
    file = io.BytesIO()
    png.write_png(file, image, told, large_cells=large_cells)
    return file.getvalue()


# ------------------------------------------------------------------------------------------------------------- pixels


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("n_colours", [2, 200, 5000])
@pytest.mark.parametrize("large_cells", [False, True])
@pytest.mark.parametrize("layout", [QImage.Format.Format_RGB32, QImage.Format.Format_ARGB32], ids=["rgb", "argb"])
def test_what_is_read_back_is_what_was_drawn(size, n_colours, large_cells, layout):
    image = image_of(size, n_colours, layout=layout)
    data = written(image, large_cells=large_cells)
    assert QImage.fromData(data) == image
    found = list(chunks(data))
    assert [found[0][0], found[-1]] == [b"IHDR", (b"IEND", b"")]
    packed = b"".join(content for kind, content in found if kind == b"IDAT")
    depth = 3 if layout == QImage.Format.Format_RGB32 else 4
    assert len(zlib.decompress(packed)) == size[1] * (1 + depth * size[0])  # its Adler-32 is checked here


def test_other_formats_are_refused():
    image = image_of((17, 16), 2).convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
    with pytest.raises(ValueError, match="Format_RGB32 or Format_ARGB32 is wanted"):
        written(image, large_cells=False)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_checksums_of_parts_make_the_checksum_of_the_whole(parts):
    joined = 1
    for part in parts:
        joined = png._joined_adler(joined, zlib.adler32(part), len(part))
    assert joined == zlib.adler32(b"".join(parts))


@pytest.mark.parametrize("text", ["猫吃鱼 {}", '{"text": "' + "猫吃鱼" * 5000 + '"}', "", "plain"])
def test_text_survives_in_every_reader(text):
    data = written(image_of((17, 16), 5), large_cells=False, attnviz=text)
    assert QImage.fromData(data).text("attnviz") == text
    assert texts(data) == {"attnviz": text}
    assert len(data) < 5000  # long text is compressed


def test_an_error_on_the_way_ends_the_writing_and_its_threads():
    def stop(done):
        raise RuntimeError(f"{done:.2f}")

    with pytest.raises(RuntimeError, match=r"0\.0"):
        png.write_png(io.BytesIO(), image_of((3840, 2160), 5000), {}, large_cells=False, each_strip=stop)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("attnviz-png")]


# ------------------------------------------------------------------------------------------------------------ drawings


@pytest.mark.parametrize("theme", ["light", "dark", "print", "transparent"])
@pytest.mark.parametrize(("n", "heads"), [(3, 1), (24, 25), (64, 12)])
def test_cells_have_their_own_colours_to_the_last_bit(tmp_path, theme, n, heads):
    drawing, picture, sheet = drawing_of(n, heads, paper=Paper(theme=theme, numbers=False))
    write_drawing(tmp_path / "a.png", drawing, sheet.paper, "{}")
    shown = pixels_of(tmp_path / "a.png")
    assert shown.shape == (1080, 1920)
    for place, frame in enumerate(picture.heads):
        xs, ys = middles(sheet, picture, place)
        assert largest_error(shown[np.ix_(ys, xs)], frame.rgb) == 0


def test_a_transparent_sheet_has_no_ground_but_opaque_cells(tmp_path):
    drawing, picture, sheet = drawing_of(8, 2, paper=Paper(theme="transparent"))
    write_drawing(tmp_path / "a.png", drawing, sheet.paper, "{}")
    shown = pixels_of(tmp_path / "a.png")
    assert shown[0, 0] == 0
    assert {int(alpha) for alpha in np.unique(shown >> 24)} > {0, 255}  # letters have soft edges
    xs, ys = middles(sheet, picture, 0)
    assert (shown[np.ix_(ys + 5, xs + 5)] >> 24 == 255).all()
    header = next(content for kind, content in chunks((tmp_path / "a.png").read_bytes()) if kind == b"IHDR")
    assert header[9] == 6


def test_between_cells_of_a_transparent_sheet_is_nothing(tmp_path):
    """Three cells of one colour looked like one bar: lines of the ground's colour were painted, which it has not."""
    drawing, _, sheet = drawing_of(4, paper=Paper(theme="transparent", numbers=False))
    write_drawing(tmp_path / "a.png", drawing, sheet.paper, "{}")
    shown = pixels_of(tmp_path / "a.png") >> 24
    left, top, width, height = map(int, sheet.plan.panels[0].map_rect)
    inside = shown[top : top + height, left : left + width]
    lines = np.flatnonzero((inside == 0).all(axis=0))
    assert sorted({round(x / (width / 4)) for x in lines.tolist()}) == [1, 2, 3]
    assert (np.delete(inside, lines, axis=1) == 255).all(axis=1).sum() == height - len(lines)


def test_nothing_white_stands_behind_the_words_of_a_transparent_plot(qapp):
    image = QImage(400, 300, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    curve = Curve(np.arange(9.0), np.arange(9.0))
    plot = Plot(curves=(curve,), marks=(Mark(4.0, "nobody gets below 4"),))
    painter = QPainter(image)
    paint_plot(painter, QRectF(0, 0, 400, 300), plot, style_of_theme("transparent"))
    painter.end()
    shown = np.frombuffer(image.constBits(), np.uint32)
    light = (shown >> 24 > 100) & (shown & 255 > 200) & (shown >> 8 & 255 > 200)
    assert not light.any()


@pytest.mark.parametrize(("dpi", "dots"), [(None, 3780), (300, 11811), (72, 2835), (600, 23622), (254, 10000)])
def test_dots_an_inch_are_recorded(tmp_path, dpi, dots):
    drawing, _, sheet = drawing_of(3, paper=Paper(width=600, height=400, dpi=dpi))
    write_drawing(tmp_path / "a.png", drawing, sheet.paper, "{}")
    found = dict(chunks((tmp_path / "a.png").read_bytes()))
    assert struct.unpack(">IIB", found[b"pHYs"]) == (dots, dots, 1)


def test_the_text_is_in_the_file_and_the_share_done_rises_to_one(tmp_path):
    shares = []
    drawing, _, sheet = drawing_of(12, 4)
    write_drawing(tmp_path / "a.png", drawing, sheet.paper, '{"text": "猫"}', shares.append)
    assert texts((tmp_path / "a.png").read_bytes()) == {"attnviz": '{"text": "猫"}'}
    assert shares == sorted(shares)
    assert shares[-1] == 1


# --------------------------------------------------------------------------------------------------------- every format


@pytest.mark.parametrize(("name", "said"), [("a.jpg", "a.jpg ends in .jpg"), ("a", "a has no ending")])
def test_another_suffix_is_refused(tmp_path, name, said):
    drawing, _, sheet = drawing_of(3)
    with pytest.raises(SpecError, match=rf"{said}: give a name that ends in \.png, \.svg, \.pdf"):
        write_drawing(tmp_path / name, drawing, sheet.paper, "{}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_drawing_that_fails_leaves_the_older_file(tmp_path, suffix):
    path = tmp_path / f"猫 吃.{suffix[1:].upper()}"
    path.write_bytes(b"old")
    drawing, _, sheet = drawing_of(3)

    def stop(_done):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_drawing(path, drawing, sheet.paper, "{}", stop)
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"old"]
    with pytest.raises(FileProblem, match="does not exist"):
        write_drawing(tmp_path / "none" / path.name, drawing, sheet.paper, "{}")
    write_drawing(path, drawing, sheet.paper, "{}")
    assert path.read_bytes() != b"old"
