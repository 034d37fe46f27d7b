"""What lies in resources/: found when installed, legible, and colours that rise evenly."""

import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QImage, QRawFont
from PySide6.QtSvg import QSvgRenderer

from attnviz.screens import APT_LINE, DNF_LINE

ROOT = resources.files("attnviz.resources")
SEQUENTIAL = ["viridis", "cividis", "magma", "inferno", "greys"]


@pytest.fixture
def raw_font(qapp) -> QRawFont:
    """The shipped file alone: no other font of the machine can stand in."""
    font = QRawFont()
    font.loadFromData(
        ROOT.joinpath("fonts/attnviz-sans.otf").read_bytes(), 20.0, QFont.HintingPreference.PreferNoHinting
    )
    assert font.isValid()
    return font


def colours(name: str) -> np.ndarray:
    text = ROOT.joinpath(f"colours/{name}.csv").read_text("ascii")
    return np.array([[int(part) for part in line.split(",")] for line in text.splitlines()])


def oklab(rgb: np.ndarray) -> np.ndarray:
    """OKLab (lightness, green-red, blue-yellow) of sRGB 0…255, by Ottosson's published matrices."""
    part = rgb / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.cbrt(linear @ cones.T) @ lab.T


def lightness(name: str) -> np.ndarray:
    return oklab(colours(name))[:, 0]


@pytest.mark.parametrize(
    "char",
    [*"猫吃鱼味答注意力−∞×÷√·…“”‘’–—←↑→↓▸▾▴◂●○■□◆✓✗Σ≈≤≥ᵀ⁰¹²³⁻₀₁αβσπäéñßœ0123456789%"],
    ids=lambda char: f"U+{ord(char):04X}",
)
def test_font_has(raw_font, char):
    assert raw_font.supportsCharacter(ord(char))


def test_font_has_the_common_chinese_characters(raw_font):
    rows = [bytes([high, low]) for high in range(0xB0, 0xD8) for low in range(0xA1, 0xFF)]
    common = "".join(pair.decode("gb2312", "ignore") for pair in rows)
    assert len(common) == 3755
    assert [char for char in common if not raw_font.supportsCharacter(ord(char))] == []


def test_font_lacks_what_it_does_not_claim(raw_font):
    assert not raw_font.supportsCharacter(ord("龘"))
    assert not raw_font.supportsCharacter(ord("😀"))


def test_font_has_a_family_name_of_its_own(raw_font):
    assert raw_font.familyName() == "attnviz Sans"
    assert "Noto" in ROOT.joinpath("fonts/OFL.txt").read_text("utf-8")


def test_digits_and_signs_are_equally_wide(raw_font):
    widths = {
        raw_font.advancesForGlyphIndexes(raw_font.glyphIndexesForString(char))[0].x() for char in "0123456789+−×÷±"
    }
    assert len(widths) == 1


def test_font_draws_pairwise_different_glyphs(raw_font):
    signs = "猫吃鱼−+×÷·•√∞"
    assert len(set(raw_font.glyphIndexesForString(signs))) == len(signs)


def test_a_root_has_no_bar_that_ends_beside_its_number(raw_font):
    """Noto's is as long as a Chinese character is wide."""
    (place,) = raw_font.glyphIndexesForString("√")
    advance = raw_font.advancesForGlyphIndexes([place])[0].x()
    assert raw_font.pathForGlyph(place).boundingRect().right() < advance < 0.7 * raw_font.pixelSize()


def test_qt_takes_the_font(qapp):
    number = QFontDatabase.addApplicationFontFromData(ROOT.joinpath("fonts/attnviz-sans.otf").read_bytes())
    assert QFontDatabase.applicationFontFamilies(number) == ["attnviz Sans"]
    font = QFont("attnviz Sans")
    font.setPixelSize(100)
    assert QFontMetricsF(font).horizontalAdvance("猫") == pytest.approx(100, abs=1)


@pytest.mark.parametrize("name", [*SEQUENTIAL, "balance"])
def test_table_has_256_colours(name):
    table = colours(name)
    assert table.shape == (256, 3)
    assert table.min() >= 0
    assert table.max() <= 255


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_lightness_rises_evenly(name):
    steps = np.diff(lightness(name))
    assert steps.min() > -0.001  # within the rounding of 8 bits
    assert np.diff(lightness(name)[::8]).min() > 0
    assert lightness(name)[-1] - lightness(name)[0] > 0.6


def test_balance_is_a_mirror_in_lightness_with_its_lightest_colours_in_the_middle():
    light = lightness("balance")
    assert np.abs(light - light[::-1]).max() < 0.01
    assert np.diff(light[:128]).min() > -0.001
    assert np.diff(light[128:]).max() < 0.001
    middle = oklab(colours("balance")[127:129])
    assert np.abs(middle[:, 1:]).max() < 0.01  # neither blue nor red


def test_balance_ends_are_blue_and_red():
    first, last = colours("balance")[[0, -1]]
    assert first.argmax() == 2
    assert last.argmax() == 0


def test_published_ends_of_viridis():
    assert colours("viridis")[[0, -1]].tolist() == [[0x44, 0x01, 0x54], [0xFD, 0xE7, 0x25]]


def test_icon_is_a_picture(qapp):
    picture = QImage.fromData(ROOT.joinpath("icons/attnviz.png").read_bytes())
    assert (picture.width(), picture.height()) == (256, 256)
    assert picture.pixelColor(0, 0).alpha() == 0
    assert QSvgRenderer(ROOT.joinpath("icons/attnviz.svg").read_bytes()).isValid()


def test_constraints_pin_what_the_program_needs():
    text = ROOT.joinpath("constraints.txt").read_text("ascii")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", pin) for pin in pins)
    assert "torch==2.13.0" in pins
    names = {pin.split("==")[0].lower().replace("_", "-") for pin in pins}
    assert {"pyside6-essentials", "numpy", "safetensors", "click", "msgspec", "regex", "psutil"} <= names


def test_package_data_is_beside_the_code():
    with resources.as_file(ROOT.joinpath("fonts/OFL.txt")) as path:
        assert "SIL OPEN FONT LICENSE" in Path(path).read_text("utf-8")


def test_readme_names_the_libraries_that_the_program_names():
    readme = Path(__file__).parent.parent.joinpath("README.md").read_text("utf-8")
    for line in (APT_LINE, DNF_LINE):
        tool, _, *packages = line.split()
        told = next(told for told in readme.splitlines() if told.startswith(f"{tool} install"))
        assert set(packages) - set(told.split()) == set()
