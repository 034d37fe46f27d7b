import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from made_pictures import frame_of
from paper_drawings import apart, busy_drawing, by_rsvg, drawing_of, largest_error, middles, pixels_of, run, tool
from PySide6.QtCore import QRectF

from attnviz.figure.cells import paint_cells
from attnviz.figure.formats import write_drawing
from attnviz.figure.styles import style_of_theme
from attnviz.spec import Paper

pytestmark = pytest.mark.usefixtures("qapp")

SVG = "{http://www.w3.org/2000/svg}"


def written(path, n, heads=1, text="{}", **paper):
    drawing, picture, sheet = drawing_of(n, heads, paper=Paper(**paper), tokens=tokens_of(n))
    write_drawing(path, drawing, sheet.paper, text)
    return picture, sheet


def root_of(path):
    return ET.parse(path).getroot()  # noqa: S314 (our own file)


def tokens_of(n):
    return ("猫", "吃", "鱼") if n == 3 else None


@pytest.mark.parametrize("theme", ["light", "dark", "print", "transparent"])
@pytest.mark.parametrize(("n", "heads"), [(3, 1), (40, 1), (150, 1), (24, 25)])
def test_cells_have_their_own_colours_twice_as_large(tmp_path, theme, n, heads):
    picture, sheet = written(tmp_path / "a.svg", n, heads, theme=theme, numbers=False)
    shown = by_rsvg(tmp_path / "a.svg", tmp_path / "b.png")
    assert shown.shape == (2160, 3840)
    for place, frame in enumerate(picture.heads):
        assert frame.level == 1
        assert sheet.plan.panels[place].map_rect.width >= 3 * n
        xs, ys = middles(sheet, picture, place, 2)
        assert largest_error(shown[np.ix_(ys, xs)], frame.rgb) <= 1


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_it_looks_as_the_png_does(tmp_path, theme):
    """Hatching, crosses, signs and numbers too: what is drawn behind a clip within a clip was once lost."""
    paper = Paper(theme=theme)
    drawing = busy_drawing(paper)
    for name in "a.svg", "a.png":
        write_drawing(tmp_path / name, drawing, paper, "{}")
    mean, wrong = apart(by_rsvg(tmp_path / "a.svg", tmp_path / "b.png", 1), pixels_of(tmp_path / "a.png"))
    assert mean < 3.4
    assert wrong < 0.004


@pytest.mark.parametrize("zoom", [0.7, 1, 1.37, 2.9])
def test_no_ground_shows_between_cells_at_any_size(tmp_path, zoom):
    """Every pixel inside of a map has the colour of a cell: no hairline of the ground, and nothing blurred."""
    picture, sheet = written(tmp_path / "a.svg", 20, 1, theme="light", numbers=False)
    shown = by_rsvg(tmp_path / "a.svg", tmp_path / "b.png", zoom)
    x, y, width, height = (int(side * zoom) for side in sheet.plan.panels[0].map_rect)
    inside = shown[y + 2 : y + height - 2, x + 2 : x + width - 2]
    gapless = sheet.plan.panels[0].map_rect.width / 20 < 28
    colours = set(np.unique(picture.heads[0].rgb).tolist())
    others = set(np.unique(inside).tolist()) - colours
    assert others <= (set() if gapless else {style_of_theme("light").card.rgb()})


class OneMap:
    """A drawing of a part of one map and nothing else."""

    size, style, has_large_cells = (400, 300), style_of_theme("dark"), True

    def __init__(self, frame, window):
        self._frame, self._window = frame, window

    def paint(self, painter, step):
        paint_cells(painter, QRectF(40, 30, 320, 240), self._window, self._frame, self.style, numbers=False)
        step(1.0)


@pytest.mark.parametrize(
    ("window", "level"),
    [
        ((0, 40, 0, 40), 1),
        ((3.5, 11.25, 2.25, 9), 1),
        ((-2, 44, -3, 50), 1),
        ((5, 29, 6.5, 31), 4),
        ((37, 40, 0, 40), 8),
    ],
)
def test_a_part_of_a_map_has_its_cells_where_an_image_has_them(tmp_path, window, level):
    frame = frame_of("head:0", (0, 40), (0, 40), level)
    drawing, paper = OneMap(frame, tuple(map(float, window))), Paper(width=400, height=300, theme="dark")
    for name in "a.svg", "a.png":
        write_drawing(tmp_path / name, drawing, paper, "{}")
    shown, wanted = by_rsvg(tmp_path / "a.svg", tmp_path / "b.png", 1), pixels_of(tmp_path / "a.png")
    assert (shown != wanted).mean() < 0.02  # of which edges lie in the very middle of a pixel
    assert (wanted != drawing.style.card.rgb()).mean() > 0.3


@pytest.mark.parametrize("theme", ["light", "dark", "print", "transparent"])
def test_the_ground_is_that_of_the_theme(tmp_path, theme):
    written(tmp_path / "a.svg", 3, theme=theme)
    corner = int(by_rsvg(tmp_path / "a.svg", tmp_path / "b.png", 1)[0, 0])
    assert corner == (0 if theme == "transparent" else style_of_theme(theme).card.rgb())


def test_outlined_text_needs_no_font(tmp_path):
    written(tmp_path / "a.svg", 3)
    text = (tmp_path / "a.svg").read_text()
    assert "<text" not in text
    assert "font" not in text
    assert "<title" not in text


def test_real_text_can_be_read(tmp_path):
    written(tmp_path / "a.svg", 3, real_text=True)
    root = root_of(tmp_path / "a.svg")
    said = list(root.iter(SVG + "text"))
    assert {"猫", "吃", "鱼"} <= {element.text for element in said}
    assert {element.get("font-family") for element in said} == {"attnviz Sans"}


def test_outlines_look_as_the_letters_on_an_image_do(tmp_path):
    """A rectangle in a letter, as in 猫, once came out reversed."""
    drawing, _, sheet = drawing_of(3, paper=Paper(), tokens=("猫",) * 3)
    for name in "a.svg", "a.png":
        write_drawing(tmp_path / name, drawing, sheet.paper, "{}")
    drawn, outlined = pixels_of(tmp_path / "a.png"), by_rsvg(tmp_path / "a.svg", tmp_path / "b.png", 1)
    for box in (sheet.plan.panels[0].row_labels, sheet.plan.panels[0].column_labels, sheet.plan.headings[0]):
        x, y, width, height = map(int, box)
        part = (slice(y, y + height), slice(x, x + width))
        ink = [255 - (shown[part] & 255).astype(int) for shown in (drawn, outlined)]
        assert ink[0].max() > 200
        assert abs(ink[0].sum() / ink[1].sum() - 1) < 0.12  # letters on an image are a little lighter


@pytest.mark.parametrize(
    ("paper", "across", "down"),
    [
        ({"width": 640, "height": 480}, "640px", "480px"),
        ({"width": 1004, "height": 709, "dpi": 300}, "85.0053mm", "60.0287mm"),
        ({"width": 600, "height": 300, "dpi": 254}, "60mm", "30mm"),
    ],
)
def test_the_size_is_that_of_the_sheet(tmp_path, paper, across, down):
    written(tmp_path / "a.svg", 3, **paper)
    root = root_of(tmp_path / "a.svg")
    assert (root.get("width"), root.get("height")) == (across, down)
    assert root.get("viewBox") == f"0 0 {paper['width']} {paper['height']}"


def test_what_is_remembered_is_in_the_metadata(tmp_path):
    text = '{"a": "<猫> & ]]> \\u0000"}'
    written(tmp_path / "a.svg", 3, text=text)
    found = root_of(tmp_path / "a.svg").find(f"{SVG}metadata/{{urn:attnviz:remembered}}remembered")
    assert found.text == text


def test_a_busy_picture_stays_small(tmp_path):
    picture, _ = written(tmp_path / "a.svg", 64, 12)
    text = (tmp_path / "a.svg").read_text()
    n_cells = sum(frame.rgb.size for frame in picture.heads)
    assert len(text) < 46 * n_cells  # 2.2 MB of colours that are all unlike their neighbours
    assert text.count("<path") < 12 * 256 + 2000
    assert len(re.findall("<g [^>]*>\\s*</g>", text)) == 0


AGAIN = """
import sys
from PySide6.QtGui import QGuiApplication
sys.path.insert(0, "tests")
application = QGuiApplication([])
from pathlib import Path
from paper_drawings import apart, busy_drawing, by_rsvg, drawing_of, largest_error, middles, pixels_of, run, tool
from attnviz.figure.cells import paint_cells
from attnviz.figure.formats import write_drawing
from attnviz.spec import Paper
drawing, _, sheet = drawing_of(6, 3, paper=Paper(), tokens=("猫", "吃鱼", "Ωж", "שלום", "☃", "a b"))
for name in sys.argv[1:]:
    write_drawing(Path(name), drawing, sheet.paper, "{}")
"""


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path):
    names = [tmp_path / name for name in ("a.svg", "b.svg", "a.png", "b.png")]
    for place in range(2):
        subprocess.run([sys.executable, "-c", AGAIN, *map(str, names[place::2])], check=True, timeout=100)
    contents = [name.read_bytes() for name in names]
    assert contents[::2] == contents[1::2]


@pytest.mark.slow
def test_chromium_shows_the_svg_as_the_png(tmp_path):
    """Of 12 heads of 64 tokens not one pixel in a thousand of a map differs; letters differ in their soft edges."""
    drawing, _, sheet = drawing_of(64, 12, paper=Paper())
    for name in "a.svg", "a.png":
        write_drawing(tmp_path / name, drawing, sheet.paper, "{}")
    shots = []
    for name in "a.svg", "a.png":
        shot = tmp_path / f"{name}.shot.png"
        run(
            tool("chromium", "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--force-device-scale-factor=1", f"--user-data-dir={tmp_path / 'user'}", f"--screenshot={shot}",
            "--window-size=1920,1080", page(tmp_path, name),
        )  # fmt: skip
        shots.append(pixels_of(shot))
    assert shots[0].shape == shots[1].shape == (1080, 1920)
    for panel in sheet.plan.panels:
        x, y, width, height = map(int, panel.map_rect)
        part = (slice(y, y + height), slice(x, x + width))
        assert (shots[0][part] != shots[1][part]).mean() < 0.001  # edges in the very middle of a pixel
    mean, wrong = apart(*shots)
    assert mean < 0.5
    assert wrong < 0.002


def page(folder, name):
    """A page that shows a picture at its own size and nothing else."""
    path = folder / f"{name}.html"
    path.write_text(f'<style>body{{margin:0}}img{{display:block}}</style><img src="{name}">')
    return path.as_uri()
