"""The numbers of every figure as a table and as arrays: those that were computed, every digit."""

import csv
import io

import numpy as np
import pytest

from attnviz import cli, number_files, rendering, tables
from attnviz.engine import Engine
from attnviz.figure_questions import question_of
from attnviz.figures import PARTS, Figure
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.remembered import recall
from attnviz.spec import Paper, RandomQK, SpecError, Text, TypedScores, View, edited, make_spec
from attnviz.studies import answers
from attnviz.tables import row_table, study_tables

WORDS = make_spec(Text(text="a b c d"), num_heads=2)
OPEN = edited(WORDS, mask="none")
FIGURES = {
    "a-b": {"beside": OPEN},
    "difference": {"beside": OPEN},
    "dropout": {"spec": edited(WORDS, dropout=0.5, training=True)},
    "exam": {"question": ExamQuestion(masks=("none", "neg-inf"), steps=2)},
    "future-share": {"question": FutureShareQuestion(length=3, draws=2)},
    "forms": {"question": FormsQuestion(tokens=4, d_model=8, num_heads=2, repeats=1)},
}
FIGURES["dropout"]["question"] = DropoutQuestion(spec=FIGURES["dropout"]["spec"], row=2, draws=4)


@pytest.fixture(scope="module")
def engine():
    made = Engine()
    yield made
    made.close()


def figure_of(shows, **fields):
    return Figure(**{"spec": WORDS, "shows": shows, **FIGURES.get(shows, {}), **fields})


def lines_in(path):
    """The header, and the lines below it."""
    header, *lines = csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""))
    return header, lines


def table_in(path):
    """The columns by their names."""
    header, lines = lines_in(path)
    return {name: [line[n] for line in lines] for n, name in enumerate(header)}


def numbers(column, dtype=np.float64):
    return np.array([float(cell) if cell else np.nan for cell in column], dtype)


@pytest.mark.parametrize("shows", PARTS)
def test_every_part_of_every_study_has_a_table_whose_numbers_are_the_answers_own(shows, engine, tmp_path):
    figure = figure_of(shows)
    question = question_of(figure)
    shelf = {"forms": (question, next(answers(question)))} if shows == "forms" else {}  # whose times take seconds
    number_files.write_numbers(tmp_path / "a.npz", figure, engine, shelf=shelf)
    ((_, answer),) = shelf.values()
    found = study_tables(figure, answer, ("a", "b", "c", "d"))
    assert set(found) == set(PARTS[shows])
    arrays = np.load(tmp_path / "a.npz", allow_pickle=False)
    assert [*arrays["tokens"]] == ["a", "b", "c", "d"]
    assert '"shows": "' + shows in str(arrays["figure"])
    seen = {id(table): (part, table) for part, table in reversed(found.items())}
    wanted = {f"{part}_{name}": array for part, table in seen.values() for name, array in table.arrays().items()}
    assert {*arrays} == {*wanted, "tokens", "spec", "figure"}
    for name, array in wanted.items():
        np.testing.assert_array_equal(arrays[name], array)
    for part, table in found.items():
        path = tmp_path / f"{part}.csv"
        number_files.write_numbers(path, figure_of(shows, parts=(part,)), engine, shelf=shelf)
        columns = table_in(path)
        for name, array in table.arrays().items():
            if array.ndim == 2:
                cells = [line[3 if "token" in columns else 2 :] for line in lines_in(path)[1] if line[0] == name]
                np.testing.assert_array_equal(np.array(cells).astype(array.dtype), array)
            elif array.dtype.kind in "fi":
                np.testing.assert_array_equal(numbers(columns[name], array.dtype), array)
            else:
                said = {True: "yes", False: "no"}
                assert columns[name] == [said.get(value, value) for value in array.tolist()]


def test_a_and_b_are_the_engines_own_and_the_difference_is_theirs(engine, tmp_path):
    number_files.write_numbers(tmp_path / "a.npz", figure_of("difference", heads=(1,)), engine)
    arrays = np.load(tmp_path / "a.npz")
    a, b = (engine.arrays(spec).stages["weights"][1] for spec in (WORDS, OPEN))
    np.testing.assert_array_equal(arrays["maps_A"], a)
    np.testing.assert_array_equal(arrays["maps_B"], b)
    np.testing.assert_array_equal(arrays["maps_B-A"], b.astype(float) - a.astype(float))
    typed = make_spec(TypedScores(scores=((0.0, 1.0), (2.0, 3.0))))
    apart = Figure(spec=typed, beside=typed, shows="difference", view=View(stage="masked_scores"))
    number_files.write_numbers(tmp_path / "b.npz", apart, engine)
    assert (np.load(tmp_path / "b.npz")["maps_B-A"] == 0).all()  # −∞ beside −∞


def test_cells_are_told_where_the_picture_has_pixels_of_several(engine, tmp_path):
    spec = make_spec(RandomQK(length=100), num_heads=1)
    figure = Figure(spec=spec, shows="a-b", beside=edited(spec, mask="none"), paper=Paper(width=80, height=60))
    assert question_of(figure).pixels < 100
    number_files.write_numbers(tmp_path / "a.csv", figure, engine)
    columns = table_in(tmp_path / "a.csv")
    assert [*columns][:4] == ["state", "query", "token", "0"]
    assert len(columns) == 103
    assert columns["state"] == ["A"] * 100 + ["B"] * 100


@pytest.mark.parametrize("shows", ["a-b", "gallery"])
def test_of_a_part_its_own_rows_and_keys_are_told(shows, engine, tmp_path):
    number_files.write_numbers(tmp_path / "whole.csv", figure_of(shows), engine)
    number_files.write_numbers(tmp_path / "part.csv", figure_of(shows, view=View(rows=(1, 3), cols=(2, 4))), engine)
    header, lines = lines_in(tmp_path / "whole.csv")
    of = [0, 1, 2, 5, 6]
    kept = [[line[n] for n in of] for line in lines if line[1] in ("1", "2")]
    assert lines_in(tmp_path / "part.csv") == ([header[n] for n in of], kept)


def test_a_row_has_a_line_for_each_key_and_a_column_for_each_stage(engine, tmp_path):
    figure = Figure(spec=WORDS, shows="row", row=2, heads=(1,), beside=OPEN)
    number_files.write_numbers(tmp_path / "a.csv", figure, engine)
    columns = table_in(tmp_path / "a.csv")
    assert [*columns] == [
        "key", "token", "hidden", "scores", "scaled_scores", "masked_scores", "weights",
        "before_scores", "before_scaled_scores", "before_weights",
    ]  # fmt: skip
    assert (columns["token"], columns["hidden"]) == (["a", "b", "c", "d"], ["no", "no", "no", "yes"])
    story = rendering.story_of(figure, engine, rendering.outline_of(engine, WORDS, View(), lambda: False))
    number_files.write_numbers(tmp_path / "a.npz", figure, engine)
    for name, array in row_table(story, "abcd").arrays().items():
        np.testing.assert_array_equal(np.load(tmp_path / "a.npz")[name], array)
        if array.dtype == np.float32:
            np.testing.assert_array_equal(numbers(columns[name], np.float32), array)
    np.testing.assert_allclose(numbers(columns["weights"]), engine.arrays(WORDS).stages["weights"][1, 2], atol=1e-6)


def test_tokens_are_no_formulas(engine, tmp_path):
    spec = make_spec(TypedScores(scores=((0.0, 1.0), (2.0, 3.0)), tokens=("=1+1", "-")))
    for figure in Figure(spec=spec, shows="row"), Figure(spec=spec, shows="gallery"):
        number_files.write_numbers(tmp_path / "a.csv", figure, engine)
        assert "'=1+1" in table_in(tmp_path / "a.csv")["token"]
        assert "-" in table_in(tmp_path / "a.csv")["token"]
    assert [*table_in(tmp_path / "a.csv")] == ["mask", "query", "token", "'=1+1", "-"]


def test_a_token_that_is_half_a_character_is_told_by_its_number(engine, tmp_path):
    spec = make_spec(Text(text="a\udcff b"))  # as the command line gives a byte that is no UTF-8
    for figure in Figure(spec=spec), Figure(spec=spec, shows="row"):
        number_files.write_numbers(tmp_path / "a.csv", figure, engine)
        assert "\\udcff" in table_in(tmp_path / "a.csv")["token"]


def test_a_part_that_an_answer_has_not_and_two_parts_of_one_table_are_refused(engine, tmp_path):
    typed = make_spec(TypedScores(scores=((0.0, 1.0), (2.0, 3.0))))
    with pytest.raises(SpecError, match="parts is forms, but this heads-study has ladder, product alone"):
        number_files.write_numbers(
            tmp_path / "a.csv", Figure(spec=typed, shows="heads-study", parts=("forms",)), engine
        )
    with pytest.raises(SpecError, match=r"parts is maps,limits, but a \.csv is one table"):
        number_files.write_numbers(tmp_path / "a.csv", figure_of("gallery", parts=("maps", "limits")), engine)
    number_files.write_numbers(tmp_path / "a.npz", figure_of("gallery", parts=("maps", "limits")), engine)
    assert {name.split("_")[0] for name in np.load(tmp_path / "a.npz")} == {
        "tokens",
        "spec",
        "figure",
        "maps",
        "limits",
    }


@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
@pytest.mark.parametrize("shows", ["heads", "row", "a-b", "gallery"])
def test_what_is_called_off_writes_nothing(shows, name, engine, tmp_path):
    with pytest.raises(rendering.Cancelled):
        number_files.write_file(tmp_path / name, figure_of(shows), engine, cancelled=lambda: True)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_numbers_of_heads_say_how_far_they_are_and_stop_between_heads_and_blocks(name, engine, tmp_path):
    figure = Figure(spec=make_spec(RandomQK(length=100), num_heads=4))
    shares, reached = [], []
    number_files.write_file(tmp_path / name, figure, engine, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    computing, writing = ([share for share in shares if (share > 0.5) is late] for late in (False, True))
    assert min(len(computing), len(writing)) >= 4
    (tmp_path / name).write_bytes(b"old")
    for most in computing[1], writing[1]:
        reached.clear()
        with pytest.raises(rendering.Cancelled):
            number_files.write_file(
                tmp_path / name, figure, engine, progress=reached.append, cancelled=lambda at=most: at in reached
            )
        assert most <= reached[-1] < (0.5 if most <= 0.5 else 1)
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"old")]


def test_a_table_is_told_in_blocks_that_are_its_text(engine):
    arrays = engine.arrays(make_spec(RandomQK(length=100), num_heads=2))
    blocks = [*tables.stage_csv(arrays, View()).blocks()]
    assert len(blocks) > 2
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(["head", "query", "token", *arrays.tokens])
    for head, matrix in enumerate(arrays.stages["weights"]):
        lines.writerows(
            [head, row, token, *cells] for row, (token, cells) in enumerate(zip(arrays.tokens, matrix, strict=True))
        )
    assert "".join(block for block, _ in blocks) == text.getvalue()


def test_arrays_of_parts_come_in_their_order(engine, tmp_path):
    figure = figure_of("difference")
    number_files.write_numbers(tmp_path / "a.npz", figure, engine)
    parts = [name.split("_")[0] for name in np.load(tmp_path / "a.npz")]
    assert [*dict.fromkeys(parts)] == ["tokens", "spec", "figure", "maps", "heads"]


def test_an_npz_has_the_heads_that_are_picked(engine, tmp_path):
    spec = make_spec(Text(text="a b c"), num_heads=3, batch=2)
    number_files.write_numbers(tmp_path / "a.npz", Figure(spec=spec, heads=(2, 0)), engine)
    arrays, whole = np.load(tmp_path / "a.npz"), engine.arrays(spec).stages
    assert [*arrays["heads"]] == [2, 0]
    np.testing.assert_array_equal(arrays["weights"], whole["weights"][:, [2, 0]])
    np.testing.assert_array_equal(arrays["output"], whole["output"])
    number_files.write_numbers(tmp_path / "b.npz", Figure(spec=spec), engine)
    assert [*np.load(tmp_path / "b.npz")] == ["tokens", "spec", *whole]


@pytest.mark.parametrize(("size", "runs"), [("320x240", 1), ("80x60", 2)])
def test_a_study_of_picture_and_numbers_is_run_once_unless_pixels_are_of_several_cells(
    size, runs, qapp, tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr("attnviz.studies.answers", lambda *given: asked.append(given) or answers(*given))
    spec = ("--length", "70", "--heads", "1", "--random-qk", "--shows", "a-b", "--beside", "mask=none")
    files = ("--image", str(tmp_path / "a.png"), "--data", str(tmp_path / "a.csv"))
    assert cli.run(["render", *spec, "--size", size, *files]) == 0
    assert len(asked) == runs
    assert len(table_in(tmp_path / "a.csv")) == 73


def test_the_command_line_and_decks_write_them(qapp, tmp_path, monkeypatch):
    asked = ("--shows", "future-share", "--ask", "draws=2")
    runs = []
    monkeypatch.setattr("attnviz.studies.answers", lambda *given: runs.append(given) or answers(*given))
    sheet = ("--size", "320x200", "--image", str(tmp_path / "a.png"))
    assert cli.run(["render", *asked, *sheet, "--data", str(tmp_path / "a.csv")]) == 0
    assert len(runs) == 1
    assert recall(tmp_path / "a.png").question.draws == 2
    assert cli.run(["render", "--spec", str(tmp_path / "a.png"), "--data", str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    deck = tmp_path / "d.toml"
    deck.write_text('[all]\nlesson = "journey"\nshows = "row"\n' + "".join(
        f'[[figure]]\nfile = "{name}"\n' for name in ("r.csv", "r.npz")
    ))  # fmt: skip
    assert cli.run(["render", str(deck), "--out", str(tmp_path)]) == 0
    assert len(table_in(tmp_path / "r.csv")["weights"]) == 6
    assert np.load(tmp_path / "r.npz")["weights"].shape == (6,)


def test_the_window_exports_them(program, qtbot, tmp_path):
    offered = {figure.shows: figure for _, figure in program.exporting.offered()}
    for shows, name in ("row", "row.csv"), ("heads", "heads.csv"), ("heads", "heads.npz"):
        with qtbot.waitSignal(program.jobs.ended, timeout=20_000) as ended:
            program.exporting.export(tmp_path / name, offered[shows])
        assert ended.args == [tmp_path / name, None]
    assert [*table_in(tmp_path / "row.csv")][:3] == ["key", "token", "hidden"]
    assert "weights" in np.load(tmp_path / "heads.npz")
