"""The map of a model: its parts add up to what is counted elsewhere.

Oracles: the tensors that the weights of such a model have; `ModelConfig.n_params`; `roofline.forward_flops`. All exact.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from llmcourse.measure.anatomy import (
    ATTENTION, FEED_FORWARD, HEAD, NORMS, PAST, TABLE, parameters_by_part, token_flops_by_part,
)  # fmt: skip
from llmcourse.measure.known_models import MODELS
from llmcourse.measure.roofline import forward_flops
from llmcourse.model.config import ModelConfig
from llmcourse.model.weights import tensor_shapes
from tests.random_model import TINY

CONFIGS = [TINY, replace(TINY, name="untied", tied=False), replace(TINY, name="biased", qkv_bias=True, o_bias=True),
           replace(TINY, name="qk norms", qk_norm=True),
           *(model.config for model in MODELS.values() if isinstance(model.config, ModelConfig))]  # fmt: skip
PART_OF = {"embed_tokens": TABLE, "self_attn": ATTENTION, "mlp": FEED_FORWARD, "norm": NORMS, "lm_head": HEAD}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_parameters_by_part_are_those_of_the_stored_tensors(config):
    counted = dict.fromkeys(parameters_by_part(config), 0)
    for name, shape in tensor_shapes(config).items():
        part = NORMS if "norm" in name else next(PART_OF[word] for word in PART_OF if word in name)
        counted[part] += prod(shape)
    assert parameters_by_part(config) == counted
    assert sum(counted.values()) == config.n_params


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("n_past", [0, 1, 999])
def test_flops_by_part_add_up_to_those_of_one_token(config, n_past):
    assert sum(token_flops_by_part(config, n_past).values()) == forward_flops(config, 1, n_past)


def test_only_looking_back_grows_with_the_text():
    near, far = token_flops_by_part(TINY, 9), token_flops_by_part(TINY, 19)
    assert {part for part in near if near[part] != far[part]} == {PAST} and far[PAST] == 2 * near[PAST]
