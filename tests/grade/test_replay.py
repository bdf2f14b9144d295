"""Reference code in probes: recorded where it is, replayed where it must not be."""

from __future__ import annotations

import collections
import importlib
import sys

import pytest

import llmcourse.given
from llmcourse.checks.codec import encode
from llmcourse.errors import AuthoringError
from llmcourse.grade.replay import HiddenCode, Player, Recorder, decode, exposed, is_plain


@pytest.fixture
def clean():
    """Takes everything back that stand-ins do to this process."""
    modules, path, package, pieces = (
        dict(sys.modules),
        list(sys.meta_path),
        sys.modules.get("colorsys"),
        dict(vars(llmcourse.given)),
    )
    yield
    sys.meta_path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.modules.update(modules)
    vars(llmcourse.given).clear()
    vars(llmcourse.given).update(pieces)
    assert sys.modules.get("colorsys") is package


def doubled(x):
    return [x, x]


def test_a_given_piece_gives_the_same_in_the_worker_as_beside_the_reference(clean):
    recorder, player = Recorder(), Player()
    recorder.install_given("01", {"doubled": doubled})
    recorder.start()
    wanted = [llmcourse.given.doubled(1), llmcourse.given.doubled("a")]
    player.install_given("01", ["doubled"])
    player.start(recorder.calls)
    assert [llmcourse.given.doubled(None), llmcourse.given.doubled(None)] == wanted


def test_a_call_that_was_not_recorded_is_refused(clean):
    player = Player()
    player.install_given("01", ["doubled"])
    player.start([["doubled", 1]])
    assert llmcourse.given.doubled(1) == 1
    with pytest.raises(HiddenCode, match="doubled"):
        llmcourse.given.doubled(1)


def test_a_probe_that_needs_more_than_plain_data_is_the_courses_fault(clean):
    recorder = Recorder()
    recorder.install_given("01", {"make": object})
    with pytest.raises(AuthoringError, match="make"):
        llmcourse.given.make()


def test_a_hidden_module_can_be_imported_but_not_used(clean):
    Player().install_modules(["colorsys_hidden", "colorsys_hidden2"], {})
    from colorsys_hidden import anything
    from colorsys_hidden2.deeper.still import more

    for piece in (anything, more):
        with pytest.raises(HiddenCode):
            piece()


def test_a_demonstrations_class_may_be_derived_from_a_hidden_one_and_gets_nothing_of_it(clean):
    Player().install_modules(["colorsys_hidden"], {})
    from colorsys_hidden import Anything

    class Mine(Anything):
        pass

    assert Mine.__mro__ == (Mine, object)


def test_what_the_probes_took_of_a_hidden_module_is_there(clean):
    recorder, player = Recorder(), Player()
    import colorsys

    recorder.install_modules(["json.decoder"])
    taken = importlib.import_module("json.decoder")
    constants, called = [taken.NaN != taken.NaN, taken.PosInf], taken.py_scanstring('a"', 0)
    player.install_modules(["json.decoder"], recorder.names)
    del sys.modules["json.decoder"]
    player.start(recorder.calls)
    stand_in = importlib.import_module("json.decoder")
    assert [stand_in.NaN != stand_in.NaN, stand_in.PosInf] == constants and stand_in.py_scanstring() == called
    assert colorsys and exposed(["json.decoder", "colorsys"]) == ["colorsys"]


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "é", b"\x00", [1, (2, {3})], {(1, "a"): [b"x"]}, collections.Counter("aab")]
)
def test_plain_data_survives_the_way_there_and_back(value):
    encoded = encode(value)
    assert is_plain(encoded) and decode(encoded) == value


def test_tensors_and_arrays_survive_too():
    import numpy as np
    import torch

    tensor, array = torch.randn(2, 3, dtype=torch.bfloat16), np.arange(6, dtype=np.int32).reshape(3, 2)
    assert torch.equal(decode(encode(tensor)), tensor) and np.array_equal(decode(encode(array)), array)
    assert decode(encode(torch.empty(0, 3))).shape == (0, 3)


def test_an_object_is_not_plain():
    assert not is_plain(encode([1, {"a": object()}]))
