"""Sessions as text: whatever is saved comes back, and whatever else is read gives a sentence with its line."""

import json
import os

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_spec import names, spans, specs

from attnviz import app, cli, opening
from attnviz.figures import Figure
from attnviz.session_files import CHOICES, SESSION_VERSION, SavedSession, from_text, is_session, to_text
from attnviz.spec import SPEC_VERSION, SpecError, Text, View, edited, from_json, make_spec, stages_of, to_json
from attnviz.views.layouts import LAYOUTS
from attnviz.views.side import PAGES

CASES = int(os.environ.get("ATTNVIZ_CASES", "1000"))  # of each property of damaged files; a million takes hours
FULL = SavedSession(
    spec=make_spec(Text(text="猫 eats"), num_heads=3), view=View(rows=(1, 2), head=2), pinned=(make_spec(), View()),
    selected=(1, 0), show_numbers=True, decimals=None, layout="test", page="leaks", dark=False,
)  # fmt: skip


@st.composite
def scenes(draw):
    spec = draw(specs())
    view = View(
        stage=draw(st.sampled_from(stages_of(spec))), head=draw(st.none() | st.integers(0, spec.num_heads - 1)),
        rows=draw(spans), cols=draw(spans), norm=draw(st.sampled_from(["auto", "unit"])),
    )  # fmt: skip
    return spec, view


@st.composite
def sessions(draw):
    said = {
        "pinned": st.none() | scenes(),
        "selected": st.none() | st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 20)),
        "show_numbers": st.booleans(),
        "decimals": st.none() | st.integers(0, 9),
        "layout": st.sampled_from(CHOICES["layout"]),
        "page": st.sampled_from(CHOICES["page"]),
        "dark": st.booleans(),
    }
    spec, view = draw(scenes())
    return SavedSession(spec=spec, view=view, **{n: draw(s) for n, s in said.items() if draw(st.booleans())})


@given(sessions())
def test_every_session_survives_the_round_trip(session):
    text = to_text(session)
    assert is_session(text)
    assert from_text(text) == session
    assert from_text(text.encode()) == session
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_a_field_that_is_not_said_is_not_written_and_stays_unsaid():
    session = SavedSession(spec=make_spec(), view=View())
    assert set(json.loads(to_text(session))) == {"attnviz", "version", "spec"}
    assert from_text(to_text(session)) == session


def test_minus_infinity_is_a_string_and_half_a_character_is_escaped():
    session = msgspec.structs.replace(FULL, spec=make_spec(Text(text="a\udce4b"), num_heads=3))
    text = to_text(session)
    assert json.loads(text)["spec"]["fill"] == "-inf"
    assert from_text(text.encode()) == session


def test_layouts_and_pages_are_the_windows_own():
    assert set(CHOICES["layout"]) == set(LAYOUTS)
    assert set(CHOICES["page"]) == set(PAGES)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just("-inf"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow])
@given(sessions(), st.data())
def test_a_session_with_other_values_in_it_opens_or_gives_a_sentence_with_a_line(session, data):
    fields = json.loads(to_text(session))
    for _ in range(data.draw(st.integers(1, 2))):
        *path, key = data.draw(st.sampled_from([place for place in places(fields) if place]))
        inside = fields
        for step in path:
            inside = inside[step]
        change = data.draw(st.sampled_from(["replace", "remove", "rename"]))
        if change == "replace":
            inside[key] = data.draw(json_values)
        elif change == "remove":
            del inside[key]
        elif isinstance(inside, dict):
            inside[data.draw(names)] = inside.pop(key)
        if not fields:
            break
    opens_or_says_why(json.dumps(fields, indent=2).encode("utf-8", "surrogatepass"))


@settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow])
@given(sessions(), st.data())
def test_a_damaged_session_opens_or_gives_a_sentence_with_a_line(session, data):
    damaged = bytearray(to_text(session).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
        match data.draw(st.sampled_from(["cut", "flip", "put"])):
            case "cut":
                del damaged[first : first + data.draw(st.integers(1, 200))]
            case "flip" if damaged:
                damaged[first] ^= data.draw(st.integers(1, 255))
            case "put":
                junk = st.binary(max_size=9) | st.sampled_from([b"NaN", b"-Infinity", b"9" * 5000, b"[" * 5000, b'"'])
                damaged[first:first] = data.draw(junk)
    opens_or_says_why(bytes(damaged))


def opens_or_says_why(text):
    try:
        session = from_text(text)
    except SpecError as error:
        assert str(error).startswith("line ")  # noqa: PT017
        assert len(str(error)) < 500  # noqa: PT017
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert from_text(to_text(session)) == session


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"mask": "neg-inf"', '"mask": "x"', "line 21: mask is 'x': give none, three-step, neg-inf, multiply, add"),
        ('"kind": "lesson"', '"kind": "lessen"', "line 52: kind is 'lessen': "),
        ('"norm": "auto"', '"norm": "a"', "line 45: norm is 'a': give auto, linear"),
        ('"head": 2', '"head": 3', "line 38: head is 3: heads count from 0, so give 0 to 2, or all"),
        ('"layout": "test"', '"layout": "exam"', "line 97: layout is 'exam': give learn, test, explore"),
        ('"decimals": null', '"decimals": 10', "line 96: decimals is 10: give 0 to 9, or null"),
        ('"selected": [\n    1', '"selected": [\n    -1', "line 91: selected is -1, 0: rows and columns count from 0"),
        ('"dark"', '"bright"', "line 99: unknown field 'bright'"),
        ('"dark"', '"page"', "line 99: 'page' stands twice"),
        ('"seed": 123,', '"seed": NaN,', 'line 33: NaN is no number of JSON: write "-inf" for -∞'),
        ('"seed": 123,', '"seed": 123', "line 34: the file is damaged (expecting ',' delimiter)"),
        (
            '"version": 1',
            '"version": 7',
            "line 3: the file was made by a newer version (7); this program reads up to 1",
        ),
        ('"version": 2', '"version": 9', "line 5: this file was made by a newer version (9); this program reads"),
        ('"version": 1', '"version": "1"', "line 3: version is '1': give a whole number from 1"),
        ('"attnviz": "session"', '"attnviz": "song"', "line 1: this is not a session of attnviz"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, sentence):
    text = to_text(FULL)
    assert old in text
    with pytest.raises(SpecError) as caught:
        from_text(text.replace(old, new, 1))
    assert str(caught.value).startswith(sentence)


def test_an_unknown_field_of_a_newer_file_says_so():
    newer = to_text(FULL).replace('"version": 1', f'"version": {SESSION_VERSION + 1}').replace('"dark"', '"sound"')
    with pytest.raises(SpecError, match=r"line 99: unknown field 'sound'; the file was made by a newer version \(2\)"):
        from_text(newer)
    inside = to_text(FULL).replace(f'"version": {SPEC_VERSION}', '"version": 99', 1).replace('"dtype"', '"type"', 1)
    with pytest.raises(SpecError, match=r"line 35: unknown field 'type'; the file was made by a newer version \(99\)"):
        from_text(inside)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "line 1: the file is empty"),
        (b" \n ", "line 1: the file is empty"),
        (b"\x89PNG\r\n\x1a\n", "line 1: this is not text (byte 0x89)"),
        (b'{\n"attnviz": "session",\n"a": "\xff"}', "line 3: this is not text (byte 0xff)"),
        (b"[" * 100_000, "line 1: lists in lists are too deep for a session"),
        (b"[\n" + b"9" * 5000 + b"]", "line 2: the file is damaged (a number of thousands of digits)"),
        (b'{"a": 1, "a": NaN,\n "\\x": 1}', "line 1: NaN is no number"),
        (b'{"attnviz": "session"}', "line 1: the session holds no spec"),
        (b'{"attnviz": "session",\n "spec": 3}', "line 2: spec is 3: give a spec"),
        (
            b'{"attnviz": "session",\n "spec": {"mask": "\\ud800"}}',
            "line 2: '\\ud800' is no text: it holds half of a letter",
        ),
        (to_json(make_spec()).encode(), "line 1: this is not a session of attnviz"),
    ],
)
def test_what_is_no_session_is_said(text, sentence):
    with pytest.raises(SpecError) as caught:
        from_text(text)
    assert str(caught.value).startswith(sentence)


def test_a_byte_order_mark_is_no_damage():
    assert from_text(b"\xef\xbb\xbf" + to_text(FULL).encode()) == FULL


# ----------------------------------------------------------------------------------------------------------- opening


def test_a_file_is_told_by_what_it_holds(tmp_path):
    for name, text in (
        ("a.attnviz", to_text(FULL)), ("b.json", to_text(FULL)), ("c.json", to_json(FULL.spec, FULL.view)),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    assert opening.read(tmp_path / "a.attnviz") == opening.read(tmp_path / "b.json") == FULL
    assert opening.read(tmp_path / "c.json") == SavedSession(spec=FULL.spec, view=FULL.view)
    with pytest.raises(IsADirectoryError):
        opening.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        opening.read(tmp_path / "none.attnviz")
    (tmp_path / "d.attnviz").write_bytes(b"")
    with (tmp_path / "d.attnviz").open("r+b") as file:
        file.truncate(100_000_000)  # takes no room on the disk
    with pytest.raises(SpecError, match="100 MB are more than attnviz writes"):
        opening.read(tmp_path / "d.attnviz")


def test_a_picture_of_two_states_has_a_pinned_and_its_page_in_sight():
    a, b = make_spec(mask="three-step", num_heads=3), make_spec(num_heads=2)
    view = View(stage="row_sums", rows=(0, 2), norm="unit")
    saved = opening.of_figure(Figure(spec=a, view=view, shows="a-b", beside=b, heads=(2,), row=4))
    assert saved.spec == b
    assert saved.view == View(norm="unit")  # B has neither that stage nor that head
    assert saved.pinned == (a, View(stage="row_sums", head=2, norm="unit"))
    assert (saved.page, saved.selected) == ("compare", (4, 4))
    alone = opening.of_figure(Figure(spec=a, view=view))
    assert alone == SavedSession(spec=a, view=view)
    assert from_json(to_json(alone.spec, alone.view)) == (a, view)


def test_the_command_line_takes_sessions_wherever_it_takes_specs(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.attnviz"
    path.write_text(to_text(FULL), encoding="utf-8")
    opened = []
    monkeypatch.setattr(app, "run_window", lambda asked, **_: opened.append(asked) or 0)
    assert cli.run([str(path)]) == 0
    assert cli.run(["--spec", str(path), "--mask", "none"]) == 0
    assert opened == [FULL, msgspec.structs.replace(FULL, spec=edited(FULL.spec, mask="none"))]
    out = tmp_path / "again.json"
    assert cli.run(["render", "--spec", str(path), "--save-spec", str(out)]) == 0
    assert from_json(out.read_bytes()) == (FULL.spec, FULL.view)
    path.write_text(to_text(FULL).replace('"test"', '"taste"'))
    assert cli.run([str(path)]) == 2
    assert capsys.readouterr().err == (f"attnviz: {path}: line 97: layout is 'taste': give learn, test, explore\n")
