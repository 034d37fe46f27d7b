"""Lesson B12: the same module in inference and in training."""

import numpy as np
import pytest

from attnviz import cli
from attnviz.engine import Engine
from attnviz.frames import CellClass, Frame, Outline
from attnviz.spec import (
    Lesson,
    Request,
    SpecError,
    Text,
    View,
    Viewport,
    edited,
    fixed_by,
    from_json,
    lesson_draws,
    make_spec,
    stages_of,
    to_json,
)

ONE_CLASS = Lesson(name="one-class")
WEIGHTS = (
    (1.0, 0.0, 0.0, 0.0), (0.834, 0.166, 0.0, 0.0), (0.9782, 0.0088, 0.013, 0.0), (0.2137, 0.1225, 0.2904, 0.3734),
)  # fmt: skip
DROPPED = (
    (2.0, 0.0, 0.0, 0.0), (0.0, 0.332, 0.0, 0.0), (1.9563, 0.0, 0.026, 0.0), (0.4274, 0.245, 0.0, 0.7468),
)  # fmt: skip
ROW_SUMS = (2.0, 0.332, 1.9824, 1.4192)
CONTEXT = (
    (0.6039, 0.9817, 0.7981, -1.5046, 1.535, -0.0645, -0.8063, 1.9115),
    (0.4447, 0.7858, 0.4585, -1.2461, 1.4151, 0.1461, -0.4732, 1.4453),
    (0.6147, 0.9547, 0.7673, -1.4346, 1.4883, -0.0303, -0.7757, 1.8926),
    (1.3895, -0.038, 0.0537, 1.1728, -0.8547, 0.7956, -0.0374, 1.6819),
)
CONTEXT_IN_TRAINING = (
    (1.2078, 1.9634, 1.5961, -3.0092, 3.07, -0.1289, -1.6125, 3.823),
    (-0.118, -0.0659, -0.4142, 0.0176, 0.2698, 0.3998, 0.3985, -0.2979),
    (1.2357, 1.9129, 1.5567, -2.87, 2.9623, -0.0819, -1.5726, 3.8011),
    (1.5698, 0.0948, 0.2097, 0.7067, -0.804, 0.6053, -0.1796, 1.9896),
)


def near(cells, figures):
    np.testing.assert_allclose(cells, np.array(figures), atol=5.1e-5)


def data_of(tmp_path, *arguments):
    path = tmp_path / "stages.npz"
    assert cli.run(["render", "--lesson", "one-class", "--data", str(path), *arguments]) == 0
    with np.load(path, allow_pickle=False) as npz:
        return {name: npz[name] for name in npz.files}


@pytest.fixture
def engine():
    one = Engine()
    yield one
    one.close()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_in_inference_it_prints_a_clean_triangle(tmp_path, dtype):
    arrays = data_of(tmp_path, "--eval", "--dropout", "0.5", "--dtype", dtype)
    near(arrays["weights"][0], WEIGHTS)
    near(arrays["context"][0], CONTEXT)
    near(arrays["output"], CONTEXT)
    assert "dropped_weights" not in arrays
    assert arrays["tokens"].tolist() == ["0", "1", "2", "3"]


def test_in_training_it_prints_a_thinned_one(tmp_path):
    arrays = data_of(tmp_path, "--train", "--dropout", "0.5")
    near(arrays["dropped_weights"][0], DROPPED)
    near(arrays["dropped_weights"][0].sum(1), ROW_SUMS)
    near(arrays["context"][0], CONTEXT_IN_TRAINING)
    batch = data_of(tmp_path, "--train", "--dropout", "0.5", "--batch", "2")
    near(batch["dropped_weights"], [[DROPPED], [DROPPED]])


def test_the_draw_is_the_lessons_until_it_is_rolled_again(engine):
    spec = make_spec(ONE_CLASS, dropout=0.5)
    assert lesson_draws(spec)
    others = (
        edited(spec, dropout_seed=4), edited(spec, dropout=0.4), edited(spec, dropout_site="context"),
        edited(spec, training=False), make_spec(dropout=0.5, dropout_seed=3, seed=3),
    )  # fmt: skip
    assert not any(map(lesson_draws, others))
    rolled = engine.arrays(others[0]).stages["dropped_weights"]
    assert not np.array_equal(rolled, engine.arrays(spec).stages["dropped_weights"])
    same = [engine.arrays(edited(spec, dropout_generator=name)).stages for name in ("portable", "torch")]
    np.testing.assert_array_equal(same[0]["dropped_weights"], same[1]["dropped_weights"])


def test_the_screen_shows_which_cells_the_lesson_dropped(engine):
    spec = make_spec(ONE_CLASS, dropout=0.5)
    request = Request(spec=spec, view=View(stage="dropped_weights"), viewport=Viewport(), generation=1)
    messages = list(engine.stream(request))
    outline = next(message for message in messages if isinstance(message, Outline))
    assert outline.origin == "the lesson's numbers: NumPy's RandomState(3)"
    assert {row.name: row.shape for row in outline.parameters if row.kind == "parameter"} == {
        f"heads.0.{name}.weight": (8, 8) for name in ("query", "key", "value")
    }
    frame = next(message for message in messages if isinstance(message, Frame))
    dropped = (frame.classes == CellClass.DROPPED).tolist()
    assert dropped == [
        [False] * 4,
        [True, False, False, False],
        [False, True, False, False],
        [False, False, True, False],
    ]


def test_what_the_lesson_fixes_and_what_it_leaves():
    spec = make_spec(ONE_CLASS)
    assert (spec.num_heads, spec.d_model, spec.d_out, spec.seed, spec.dropout_seed) == (1, 8, 8, 3, 3)
    assert (spec.mask, spec.fill) == ("neg-inf", -1e9)
    for field, value in {"num_heads": 2, "d_out": 4, "seed": 5, "projection": "rand", "out_proj": True}.items():
        with pytest.raises(SpecError, match="the lesson's") as caught:
            make_spec(ONE_CLASS, **{field: value})
        assert caught.value.field == field
    assert all("the lesson's" in fixed.reason for fixed in fixed_by(ONE_CLASS).values())
    assert stages_of(edited(spec, mask="multiply"))[6:8] == ("unmasked_weights", "weights")
    assert from_json(to_json(spec))[0] == spec


def test_the_way_there_and_back():
    journey = make_spec(dropout=0.5)
    there = edited(journey, source=ONE_CLASS)
    assert (there.seed, there.dropout_seed, there.fill, there.dropout) == (3, 3, -1e9, 0.5)
    back = edited(there, source=Text(text="a b"))
    assert (back.seed, back.dropout_seed, back.fill) == (123, 123, float("-inf"))
    assert edited(edited(journey, fill=-7.0, dropout_seed=9), source=ONE_CLASS).fill == -7.0
    assert edited(edited(journey, dropout_seed=9), source=ONE_CLASS).dropout_seed == 9
