import io
import json
import struct
import subprocess
import sys
import zlib
from importlib import metadata
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paper_drawings import drawing_of
from PIL import Image, PngImagePlugin
from PySide6.QtGui import QImage
from test_spec import specs

import attnviz
from attnviz.figure.formats import write_drawing
from attnviz.figure.formats.gif import write_animation
from attnviz.figures import PARTS, SHOWS, Figure
from attnviz.files import FileProblem
from attnviz.questions.compare import CompareQuestion
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.questions.heads import HeadsQuestion
from attnviz.questions.leak import LeakQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.remembered import MOST_BYTES, PICTURES, recall, remember
from attnviz.spec import THEMES, Paper, SpecError, Text, View, make_spec, to_json

SPEC = make_spec(Text(text="猫 eats \x00 ]]> & \ufffe fish"), dropout=0.5, num_heads=3)
FIGURE = Figure(spec=SPEC, view=View(norm="log"), paper=Paper(title="猫 <吃> 鱼", theme="dark"), heads=(2, 0), row=1)
QUESTIONS = [
    None, CompareQuestion(a=SPEC, b=make_spec()), DropoutQuestion(spec=SPEC, row=2), ExamQuestion(masks=("none",)),
    FormsQuestion(tokens=64), FutureShareQuestion(draws=3), GalleryQuestion(spec=SPEC, row=1), HeadsQuestion(spec=SPEC),
    LeakQuestion(spec=SPEC, scale=2.0), RoundsQuestion(spec=SPEC, head=2),
]  # fmt: skip


@pytest.fixture(scope="module")
def pictures(qapp, tmp_path_factory):
    """A picture of each format that remembers `FIGURE`."""
    folder = tmp_path_factory.mktemp("pictures")
    drawing, _, sheet = drawing_of(3, paper=Paper(width=160, height=120))
    for suffix in PICTURES:
        if suffix == ".gif":
            images = [QImage(30, 20, QImage.Format.Format_RGB32) for _ in range(2)]
            for place, image in enumerate(images):
                image.fill(0xFF123456 + place)
            write_animation(folder / "a.gif", images, 0.5, remember(FIGURE))
        else:
            write_drawing(folder / f"a{suffix}", drawing, sheet.paper, remember(FIGURE))
    return {suffix: folder / f"a{suffix}" for suffix in PICTURES}


# ---------------------------------------------------------------------------------------------------------- round trip

papers = st.builds(
    Paper, width=st.integers(16, 5000), height=st.integers(16, 5000), dpi=st.none() | st.floats(1, 10_000),
    theme=st.sampled_from(THEMES), title=st.none() | st.text(max_size=20), numbers=st.booleans(),
    decimals=st.none() | st.integers(0, 9), type_scale=st.floats(0.1, 10),
)  # fmt: skip


@st.composite
def figures(draw):
    spec, shows = draw(specs()), draw(st.sampled_from(SHOWS))
    heads = tuple(draw(st.lists(st.integers(0, spec.num_heads - 1), unique=True)))
    beside = draw(specs()) if shows in ("a-b", "difference") or draw(st.booleans()) else None
    parts = draw(st.lists(st.sampled_from(PARTS[shows]), unique=True)) if shows in PARTS else []
    return Figure(
        parts=tuple(parts),
        spec=spec, view=View(head=draw(st.sampled_from([None, 0]))), paper=draw(papers), shows=shows, heads=heads,
        row=draw(st.none() | st.integers(0, 1 << 20)), beside=beside, question=draw(st.sampled_from(QUESTIONS)),
    )  # fmt: skip


def png_of(text, keyword="attnviz"):
    """The least PNG with a text in it, written by Pillow."""
    told = PngImagePlugin.PngInfo()
    told.add_itxt(keyword, text)
    file = io.BytesIO()
    Image.new("RGB", (1, 1)).save(file, "PNG", pnginfo=told)
    return file.getvalue()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(figures())
def test_every_figure_survives(figure):
    text = remember(figure)
    assert recall(png_of(text)) == figure
    assert text.isascii()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name if question else "none")
def test_every_question_survives(question):
    figure = msgspec.structs.replace(FIGURE, question=question)
    assert recall(png_of(remember(figure))) == figure


@pytest.mark.parametrize("suffix", PICTURES)
def test_every_format_remembers(pictures, suffix):
    assert recall(pictures[suffix]) == FIGURE
    assert recall(pictures[suffix].read_bytes()) == FIGURE


def test_the_versions_are_told(pictures):
    fields = json.loads(remember(FIGURE))
    assert (fields["attnviz"], fields["torch"]) == (attnviz.__version__, metadata.version("torch"))
    assert json.loads(to_json(SPEC, FIGURE.view)) == fields["scene"]
    assert fields["scene"]["fill"] == "-inf"


def test_the_first_pictures_held_spec_and_view_alone():
    assert recall(png_of(to_json(SPEC, View(norm="log")))) == Figure(spec=SPEC, view=View(norm="log"))


AN_OLDER_PICTURES = """{"attnviz": "0.1.0", "torch": "2.13.0+cpu", "format": 1, "scene": {"version": 2, "source":
{"kind": "lesson", "name": "journey"}, "num_heads": 2, "num_kv_heads": 2, "d_model": 3, "d_out": 4,
"implementation": "stacked", "out_proj": false, "qkv_bias": false, "projection": "linear", "scale": "auto",
"scale_after_mask": false, "soft_cap": null, "mask": "none", "fill": "-inf", "mask_shape": {"kind": "causal"},
"top_k": null, "dropout": 0.0, "dropout_site": "weights", "dropout_seed": 123, "dropout_generator": "portable",
"training": true, "batch": 1, "seed": 123, "device": "cpu", "dtype": "float32", "view": {"stage": "weights",
"head": null, "rows": null, "cols": null, "pooling": "max", "norm": "auto", "colours": "viridis"}},
"paper": {"width": 640, "height": 400, "dpi": null, "theme": "light", "title": null, "caption": true,
"legend": true, "colour_bar": true, "labels": true, "numbers": true, "decimals": null, "tables": false,
"bound": null, "type_scale": 1.0, "real_text": false}, "shows": "gallery", "heads": [], "row": null,
"beside": null, "question": null, "parts": [], "animates": "nothing", "frames": 12, "seconds": 0.8}"""
"""What a picture remembered when a paper still had ``tables``, in lines."""


def test_an_older_picture_is_read_without_what_no_figure_has_any_more():
    paper = Paper(width=640, height=400)
    assert recall(png_of(AN_OLDER_PICTURES)) == Figure(spec=make_spec(mask="none"), shows="gallery", paper=paper)
    with pytest.raises(SpecError, match="unknown field `chairs`"):
        recall(png_of(AN_OLDER_PICTURES.replace('"tables"', '"chairs"')))


@pytest.mark.parametrize("kind", ["tEXt", "zTXt", "iTXt", "zipped iTXt"])
def test_pictures_that_other_programs_saved_again(kind):
    told = PngImagePlugin.PngInfo()
    add = told.add_itxt if "iTXt" in kind else told.add_text
    add("attnviz", remember(FIGURE), zip=kind.startswith("z"))
    file = io.BytesIO()
    Image.new("RGB", (1, 1)).save(file, "PNG", pnginfo=told)
    assert recall(file.getvalue()) == FIGURE


def test_reading_loads_neither_torch_nor_qt(pictures):
    code = """
import sys
from pathlib import Path
from attnviz.remembered import recall, remember
for name in sys.argv[1:]:
    remember(recall(Path(name)))
print([name for name in ("torch", "PySide6", "numpy.random") if name in sys.modules])
"""
    words = [sys.executable, "-c", code, *map(str, pictures.values())]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=100)
    assert "torch" not in done.stdout
    assert "PySide6" not in done.stdout


# --------------------------------------------------------------------------------------------------------- refused


def changed(**fields):
    return png_of(json.dumps({**json.loads(remember(FIGURE)), **fields}))


def doctype(text):
    return f'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg>{text}</svg>'.encode()


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def bomb(size=1 << 30):
    """A small PNG whose text is ``size`` bytes long once it is unpacked."""
    pack, packed = zlib.compressobj(9), []
    for _ in range(size >> 20):
        packed.append(pack.compress(b" " * (1 << 20)))
    packed.append(pack.flush())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"zTXt", b"attnviz\0\0" + b"".join(packed))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (png_of("x", "Comment"), "has no attention in it (it is a picture of the window, was not made by attnviz, or"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "has no attention in it"),
        (b"%PDF-1.4\n%%EOF", "has no attention in it"),
        (b"GIF89a" + bytes(7) + b";", "has no attention in it"),
        (b"", "is damaged: it is none of .png, .svg, .pdf, .gif"),
        (b"\xff\xd8\xff\xe0 JFIF", "is damaged: it is none of"),
        (b"\x89PNG\r\n\x1a\n", "is damaged: it ends too early"),
        (b"<svg", "is damaged: it is no XML in line 1"),
        (doctype("&b;"), "is damaged: it declares a document type"),
        (b"GIF89a", "is damaged: it ends too early"),
        (b"GIF89a" + bytes(7) + b"?", "is damaged: it is no GIF further on"),
        (png_of("{"), "is damaged: what it remembers is no JSON"),
        (png_of("[" * 100_000), "is damaged: what it remembers is no JSON"),
        (png_of("[]"), "cannot be opened: what it remembers is no JSON object"),
        (png_of("{}" + " " * MOST_BYTES), "is damaged: it remembers more than any picture has to"),
        (bomb(), "is damaged: it remembers more than any picture has to"),
        (png_of(remember(FIGURE)).replace(b"attnviz\0", b"attnviz\0\1"), "is damaged"),
        (changed(format=9, attnviz="7.1"), "was made by a newer version, attnviz 7.1; this is "),
        (changed(smell="fishy"), "cannot be opened: unknown field 'smell'"),
        (changed(smell="fishy", attnviz="7.1"), "unknown field 'smell' (it was made by attnviz '7.1'; this is "),
        (changed(scene=None), "cannot be opened: there is no spec in it"),
        (changed(scene={"version": 99}), "made by a newer version (99)"),
        (changed(scene={"source": {"kind": "lesson"}, "smell": 1}), "unknown field 'smell'"),
        (changed(heads=[7]), "heads has 7: heads count from 0 to 2"),
        (changed(heads="all"), "heads: Expected `array`"),
        (changed(paper={"width": 1}), "size is 1x1080: give a width"),
        (changed(question={"kind": "smell"}), "question: Invalid value 'smell'"),
        (changed(question={"kind": "exam", "steps": 0}), "steps is 0: give a whole number"),
        (changed(question={"kind": "exam", "\n": 0}), "contains unknown field `\\n`"),
        (changed(question={"kind": "dropout"}), "missing required field `spec`"),
        (changed(**{"x" * 9999: 1}), "cannot be opened: unknown field 'xxx"),
    ],
    ids=lambda part: None if isinstance(part, bytes) else part[-24:],
)  # fmt: skip
def test_what_remembers_nothing_says_so_in_one_sentence(data, said):
    with pytest.raises(SpecError) as caught:
        recall(data)
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.startswith("this picture ")
    assert "\n" not in sentence
    assert len(sentence) < 500


def test_a_file_is_named(tmp_path):
    (tmp_path / "猫.png").write_bytes(b"?")
    with pytest.raises(SpecError, match=r"^猫\.png is damaged: "):
        recall(tmp_path / "猫.png")
    with pytest.raises(FileProblem, match="there is no such file"):
        recall(tmp_path / "b.png")
    with pytest.raises(FileProblem, match="that is a folder"):
        recall(tmp_path)


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_picture_cut_anywhere_is_whole_or_refused(pictures, suffix):
    data = pictures[suffix].read_bytes()
    whole = 0
    for end in {*range(0, len(data), max(1, len(data) // 300)), *range(len(data) - 40, len(data))}:
        try:
            assert recall(data[:end]) == FIGURE
            whole += 1
        except SpecError:
            pass
    assert whole < 341


@st.composite
def mutated(draw, parts):
    """A picture with some bytes changed, removed or doubled, or the front of one and the end of another."""
    data = bytearray(draw(st.sampled_from(parts)))
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(["set", "cut", "double", "insert", "join"]))
        length = draw(st.integers(1, 40))
        if how == "set":
            data[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
        elif how == "cut":
            del data[place : place + length]
        elif how == "double":
            data[place:place] = data[place : place + length]
        elif how == "insert":
            data[place:place] = draw(st.sampled_from([b"1e999", b"NaN", b'"', b"[" * 50, b"9" * 400, b"null", b"-inf"]))
        else:
            data[place:] = draw(st.sampled_from(parts))[place:]
    return bytes(data)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_pictures_give_a_figure_or_a_sentence(pictures, data):
    texts = [remember(FIGURE).encode(), remember(Figure(question=QUESTIONS[1])).encode(), to_json(SPEC).encode()]
    if data.draw(st.booleans()):
        picture = data.draw(mutated([path.read_bytes() for path in pictures.values()]))
    else:
        picture = png_of(data.draw(mutated(texts)).decode("utf-8", "replace"))
    try:
        assert isinstance(recall(picture), Figure)
    except SpecError as error:
        assert len(str(error)) < 600  # noqa: PT017


def test_reading_a_bomb_takes_no_memory(tmp_path):
    """A gigabyte of blanks, told by the address space that the process may have."""
    (tmp_path / "a.png").write_bytes(bomb())
    code = """
import resource, sys
from pathlib import Path
from attnviz.remembered import recall
used = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize"))) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), used + (100 << 20)))
try:
    recall(Path(sys.argv[1]))
except ValueError as error:
    print(error)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc")
    words = [sys.executable, "-c", code, str(tmp_path / "a.png")]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=100)
    assert "remembers more than any picture has to" in done.stdout
