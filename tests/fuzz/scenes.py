"""Decks damaged by chance, as bytes and as tables: each is read, or refused in one sentence; no name leads out."""

from importlib import resources
from pathlib import Path, PurePosixPath, PureWindowsPath
from random import Random

from attnviz.scene_files import SceneProblem, read
from attnviz.scene_files.keys import KEYS
from attnviz.scene_files.writing import toml
from attnviz.toml_files import tables_of

from .damage import damaged_bytes

RICH = """\
[all]
size = "17x8.5cm@300dpi"
theme = "print"
caption = false
lesson = "journey"

[[figure]]
file = "a/01 猫.png"
step = "3.5.1.4"
rows = [0, 3]
cols = "1:"
pick = [0]

[[figure]]
file = "02.svg"
scores = [[0.5, -inf], [1, 2.5e3]]
values = "1 0; .1 .1"
dims = ["x", "y,z"]
tokens = ["a", "b"]
mask = "neg-inf"
fill = -1e4
shows = "a-b"
beside = { mask = "none", dropout = 0.5, train = true }

[[figure]]
file = "03.gif"
length = 9
random-qk = true
qk_scale = 2
heads = 4
mask-shape = "blocks:2,3"
animate = "re-rolls"
frames = 3
seconds = 0.5
dropout = 0.25

[[figure]]
file = "04.pdf"
text = '''
the cat eats'''
shows = "dropout"
[figure.ask]
draws = 100

[[figure]]
file = "n.npz"
spec = "nothing.json"
soft_cap = "none"
"""
_SHELF = resources.files("attnviz.resources").joinpath("scenes")
BASES = (RICH, RICH, *(entry.read_text("utf-8") for entry in _SHELF.iterdir() if entry.name.endswith(".toml")))
NASTY = (
    "", "\0", "..", "../../x.png", "/etc/x.png", "C:\\x.png", "c:x.png", "NUL.png", "a/../../b.svg", "~/x.png",
    "a\\b.png", "con", "lpt1.pdf", "x.png.", "out/x.png", "猫" * 300 + ".png", "\u202e.png", "\x1b[2J.png", "9" * 5000,
    "9" * 400 + "x3",
    "1e999x1", "drawn:0:0-99999999999", "blocks:" + "1," * 50, "window:0", "prefix:", "ones:33", "none", "all", "-inf",
    0, -1, 1, 2, 3.5, -0.0, 1e308, 1e-320, float("inf"), float("-inf"), 1 << 62, -(1 << 63), (1 << 63) - 1, 10**30,
    True, False, [], [[]], [[], [1]], [1, "a"], [[1, 2], [3]], [0, 1 << 40], [True, False], {}, {"mask": "none"},
    {"a": {"b": []}}, {"draws": 0}, {"scores": [[1]], "text": "x"}, [{}], "train", "x.toml", "x.npy",
    "cuda:0", "float16",
)  # fmt: skip
_TOKENS = (
    b"\0 \xff \xed\xa0\x80 \xef\xbb\xbf [[figure]] [[ ]] [ ] { } = . , \" ' \"\"\" ''' # \n \r\n -inf nan 1979-05-27 "
    b"0x7fffffffffffffff 1__0 \\u0000 \\U0010ffff [all] file beside ask spec qk"
).split(b" ")


def damaged_tables(random: Random, text: str) -> bytes:
    """The deck in ``text`` with one or two values or keys replaced."""
    top = tables_of(text)
    for _ in range(random.randint(1, 2)):
        table = random.choice([top.setdefault("all", {}), *top["figure"]])
        place = random.choice([None, *table])
        match random.randrange(4):
            case 0 if place is not None:
                table[place] = random.choice(NASTY)
            case 1:
                table[random.choice(["file", *KEYS])] = random.choice(NASTY)
            case 2 if place is not None:
                table[random.choice([*KEYS, "titel", "猫", "file"])] = table.pop(place)
            case _:
                other = random.choice(top["figure"])
                key = random.choice(list(other) or ["file"])
                table[key] = other.get(key, "x.png")
    parts = [f"[all]\n{_lines(top['all'])}", *(f"[[figure]]\n{_lines(table)}" for table in top["figure"])]
    return "\n".join(parts).encode("utf-8", "surrogatepass")


def _lines(table: dict[str, object]) -> str:
    return "".join(f"{toml(key)} = {toml(value)}\n" for key, value in table.items())


def case(random: Random, folder: Path) -> None:
    """One damaged deck in ``folder``. Raises AssertionError, or whatever a reader must not."""
    text = random.choice(BASES)
    data = damaged_bytes(random, text.encode(), _TOKENS) if random.random() < 0.5 else damaged_tables(random, text)
    deck = folder / "deck.toml"
    deck.write_bytes(data)
    try:
        found = read(deck)
    except SceneProblem as problem:
        said, line = str(problem), problem.line
        assert said.startswith("deck.toml")
        assert len(said) < 800
        assert said.isprintable(), said
        assert line is None or 1 <= line <= data.count(b"\n") + 1
        return
    for one in found.figures:
        assert (one.figure is None) == bool(one.problem)
        for kind in PurePosixPath, PureWindowsPath:
            path = kind(one.file)
            assert not path.is_absolute()
            assert not path.drive
            assert ".." not in path.parts
