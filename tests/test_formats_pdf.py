import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from paper_drawings import apart, busy_drawing, by_poppler, drawing_of, largest_error, middles, pixels_of, run, tool

from attnviz.figure.formats import write_drawing
from attnviz.figure.styles import style_of_theme
from attnviz.spec import Paper

pytestmark = pytest.mark.usefixtures("qapp")


def written(path, n, heads=1, text="{}", **paper):
    tokens = ("猫", "吃", "鱼") if n == 3 else None
    drawing, picture, sheet = drawing_of(n, heads, paper=Paper(**paper), tokens=tokens)
    write_drawing(path, drawing, sheet.paper, text)
    return picture, sheet


@pytest.mark.parametrize("theme", ["light", "dark", "print", "transparent"])
@pytest.mark.parametrize(("n", "heads"), [(3, 1), (40, 1), (150, 1), (24, 25)])
def test_cells_have_their_own_colours_twice_as_large(tmp_path, theme, n, heads):
    picture, sheet = written(tmp_path / "a.pdf", n, heads, theme=theme, numbers=False)
    shown = by_poppler(tmp_path / "a.pdf", tmp_path / "b.png")
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
    for name in "a.pdf", "a.png":
        write_drawing(tmp_path / name, drawing, paper, "{}")
    mean, wrong = apart(by_poppler(tmp_path / "a.pdf", tmp_path / "b.png", 96), pixels_of(tmp_path / "a.png"))
    assert mean < 3.4
    assert wrong < (0.010 if theme == "print" else 0.004)  # edges of black strokes are blended otherwise


@pytest.mark.parametrize("dpi", [71, 96, 131, 200])
def test_no_ground_shows_between_cells_at_any_size(tmp_path, dpi):
    """Of a map in one colour no pixel has another, though a viewer blends the edges of each rectangle."""
    drawing, picture, sheet = drawing_of(20, paper=Paper(theme="light", numbers=False, width=900, height=700))
    frame = picture.heads[0]
    colours = np.where(np.indices(frame.rgb.shape).sum(axis=0) % 2, 0xFF400040, 0xFF400041).astype(np.uint32)
    frame.rgb.flags.writeable = True
    frame.rgb[:] = colours
    write_drawing(tmp_path / "a.pdf", drawing, sheet.paper, "{}")
    shown = by_poppler(tmp_path / "a.pdf", tmp_path / "b.png", dpi)
    x, y, width, height = (int(side * dpi / 96) for side in sheet.plan.panels[0].map_rect)
    inside = shown[y + 2 : y + height - 2, x + 2 : x + width - 2]
    assert largest_error(inside, np.full(inside.shape, 0xFF400040, np.uint32)) <= 2


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_the_ground_is_that_of_the_theme(tmp_path, theme):
    written(tmp_path / "a.pdf", 3, theme=theme)
    shown = by_poppler(tmp_path / "a.pdf", tmp_path / "b.png", 96)
    corners = {int(shown[y, x]) for y in (1, -2) for x in (1, -2)}
    assert corners == {style_of_theme(theme).card.rgb()}


def test_a_transparent_page_has_no_ground(tmp_path):
    written(tmp_path / "a.pdf", 3, theme="transparent")
    run(tool("pdftocairo", "poppler"), "-png", "-transp", "-singlefile", str(tmp_path / "a.pdf"), str(tmp_path / "b"))
    assert pixels_of(tmp_path / "b.png")[0, 0] == 0


def test_text_comes_back(tmp_path):
    written(tmp_path / "a.pdf", 3, title="猫吃鱼 and fish")
    words = run(tool("pdftotext", "poppler"), str(tmp_path / "a.pdf"), "-").decode()
    assert "猫吃鱼 and fish" in words
    assert {"猫", "吃", "鱼", "query", "key"} <= set(words.split())
    fonts = run(tool("pdffonts", "poppler"), str(tmp_path / "a.pdf")).decode().splitlines()[2:]
    assert len(fonts) == 1
    assert re.search(r"attnvizSans\S* .*Identity-H +yes", fonts[0])
    assert (tmp_path / "a.pdf").stat().st_size < 60_000  # the letters that are used, not the whole font of 0.8 MB
    told = run(tool("pdfinfo", "poppler"), str(tmp_path / "a.pdf")).decode()
    assert re.search(r"Title: +猫吃鱼 and fish\n", told)


@pytest.mark.parametrize(
    ("width", "height", "dpi"), [(1920, 1080, None), (1004, 709, 300), (999, 333, 254), (3840, 2160, 72.5)]
)
def test_a_page_is_exactly_the_sheet(tmp_path, width, height, dpi):
    written(tmp_path / "a.pdf", 3, width=width, height=height, dpi=dpi)
    told = run(tool("pdfinfo", "poppler"), "-box", str(tmp_path / "a.pdf")).decode()
    found = re.search(r"MediaBox: +0\.00 +0\.00 +([\d.]+) +([\d.]+)", told)
    for side, points in zip((width, height), found.groups(), strict=True):
        assert float(points) == pytest.approx(side / (dpi or 96) * 72, abs=0.006)
    shown = by_poppler(tmp_path / "a.pdf", tmp_path / "b.png", dpi or 96)
    assert abs(shown.shape[0] - height) <= 1
    assert abs(shown.shape[1] - width) <= 1


def test_a_page_is_no_longer_than_readers_open(tmp_path):
    written(tmp_path / "a.pdf", 3, width=30_000, height=400)
    told = run(tool("pdfinfo", "poppler"), str(tmp_path / "a.pdf")).decode()
    assert re.search(r"Page size: +14400 x 192 pts", told)


def test_what_is_remembered_is_attached(tmp_path):
    text = '{"a": "' + "fish" * 999 + '"}'
    written(tmp_path / "a.pdf", 3, text=text)
    run(tool("pdfdetach", "poppler"), "-saveall", "-o", str(tmp_path), str(tmp_path / "a.pdf"))
    assert (tmp_path / "attnviz.json").read_text() == text


# ------------------------------------------------------------------------------------------------------- the same bytes

AGAIN = """
import sys
from PySide6.QtGui import QGuiApplication
sys.path.insert(0, "tests")
application = QGuiApplication([])
from pathlib import Path
from paper_drawings import apart, busy_drawing, by_poppler, drawing_of, largest_error, middles, pixels_of, run, tool
from attnviz.figure.formats import write_drawing
from attnviz.spec import Paper
paper = Paper(title="Ωж ☃ שלום 猫", width=1004, height=709, dpi=300)
drawing, _, sheet = drawing_of(6, 3, paper=paper, tokens=("猫", "吃鱼", "Ωж", "שלום", "☃", "a b"))
for name in sys.argv[1:]:
    write_drawing(Path(name), drawing, sheet.paper, "{}")
"""


def in_a_process(*names, **environment):
    words = [sys.executable, "-c", AGAIN, *map(str, names)]
    subprocess.run(words, check=True, timeout=100, env={**os.environ, **environment})


@pytest.mark.slow
def test_processes_at_other_times_and_places_write_the_same_bytes(tmp_path):
    """Several fonts among them, which Qt keeps in a table of chance; in zones whose dates are longer."""
    names = [tmp_path / f"{n}.pdf" for n in range(6)]
    began = time.time()
    for zone, pair in zip(("UTC", "Asia/Kolkata", "America/New_York"), (names[:2], names[2:4], names[4:]), strict=True):
        in_a_process(*pair, TZ=zone)
    while time.time() < began + 1.1:
        in_a_process(names[-1])
    contents = {name.read_bytes() for name in names}
    assert len(contents) == 1
    assert b"(D:20000101000000Z)" in contents.pop()


@pytest.mark.parametrize(
    ("given", "date"),
    [("1700000000", b"(D:20231114221320Z)"), ("soon", b"(D:20000101000000Z)"), ("9" * 30, b"(D:9999")],
)
def test_the_date_is_that_of_the_source_where_one_is_given(tmp_path, monkeypatch, given, date):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    written(tmp_path / "a.pdf", 3)
    data = (tmp_path / "a.pdf").read_bytes()
    assert data.count(date) == 2
    year = date[3:7].decode()
    assert set(re.findall(rb'xmp:\w+Date="(\d{4})', data)) == {year.encode()}


def test_the_table_of_places_is_right(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        written(tmp_path / "a.pdf", 3)
    finally:
        monkeypatch.undo()
        time.tzset()
    data = (tmp_path / "a.pdf").read_bytes()
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", data)[1])
    assert data[start:].startswith(b"xref\n0 ")
    places = [int(place) for place in re.findall(rb"(?m)^(\d{10}) 00000 n ", data[start:])]
    assert len(places) > 10
    for number, place in enumerate(places, 1):
        assert data[place:].startswith(b"%d 0 obj" % number)


def test_another_text_gives_another_document(tmp_path):
    ids = []
    for text in "{}", "{}", '{"a": 1}':
        written(tmp_path / "a.pdf", 3, text=text)
        ids.append(re.search(rb"/ID \[ <(\w+)>", (tmp_path / "a.pdf").read_bytes())[1])
    assert ids[0] == ids[1] != ids[2]
