"""Wrong answers that would destroy a run of the real model: one visible probe must catch each, before the stage is "yours"."""

from __future__ import annotations

import pytest

from llmcourse import checks, given
from llmcourse.checks import load_wrong
from llmcourse.workbook.course import course
from llmcourse.workbook.examine import examine
from llmcourse.workbook.report import report

DESTROYS = [
    ("00", "stops_at_the_prompt"),  # a chat's prompt holds the id that ends an answer
    ("01", "SharesItsRest"),  # two answers at once
    ("02", "angles_for_heads"),  # a step of as many tokens as there are heads
    ("02", "forgets_the_dtype"),  # any 16-bit model
    ("03", "overflows"),  # NaN from loud scores
    ("04", "stays_wide"),  # any 16-bit model
    ("04", "overflows"),  # NaN from a far open gate
    ("04", "o_forgotten"),  # the default model's sizes allow it
    ("08", "a_code_of_five_bits"),  # it spills into the code beside it
    ("08", "a_constant_group_has_scale_1"),
    ("08", "OnePositionForAllLayers"),
]


@pytest.mark.parametrize("number, name", DESTROYS)
def test_a_visible_probe_catches_what_would_destroy_the_run(number, name):
    loaded, reference = given.answers(number), given.answer(number)
    one, = (one for one in load_wrong(course().wrong(number)) if one.name == name)
    answer = reference.replaced(one.exercise, one.build(loaded.sources[one.exercise], loaded.objects))
    assert not examine(checks.lesson(number), one.exercise, answer, reference).complete


NAMED = [
    ("01", "count_pairs", "def count_pairs(words):\n    ids = [i for w, t in words for _ in range(t) for i in w]\n    counts = {}\n"
     "    for pair in zip(ids, ids[1:]):\n        counts[pair] = counts.get(pair, 0) + 1\n    return counts", "next"),
    ("03", "attention", "import torch\ndef attention(q, k, v, mask, scale):\n    s = (q @ k.T) * scale\n    s[mask] = -torch.inf\n"
     "    return torch.nan_to_num(s.softmax(-1)) @ v", "True means"),
    ("05", "top_p_filter", "import torch\ndef top_p_filter(logits, p):\n    if p >= 1:\n        return logits\n"
     "    s, order = logits.sort(descending=True, stable=True)\n    probs = s.softmax(-1)\n    gone = probs.cumsum(-1) - probs >= p\n"
     "    gone[0] = False\n    return logits.masked_fill(gone, -torch.inf)", "Map places back to ids"),
    ("06", "forward_flops", "def forward_flops(config, n_tokens, n_past):\n    c, d = config, config.width\n"
     "    w = d * d + d * d + d * c.n_kv_heads * c.head_dim + c.n_heads * c.head_dim * d + 3 * d * c.ffn_width\n"
     "    pairs = n_tokens * n_past + n_tokens * (n_tokens + 1) // 2\n"
     "    return c.n_layers * (2 * n_tokens * w + 4 * c.n_heads * c.head_dim * pairs) + 2 * c.vocab_size * d", "not d · d"),
    ("07", "ConcatCache", "import torch\nclass ConcatCache:\n    def __init__(self, n):\n        self.K, self.V = {}, {}\n"
     "    def update(self, layer, k, v):\n        if layer in self.K:\n"
     "            self.V[layer] = torch.cat([self.V[layer], k])\n            self.K[layer] = torch.cat([self.K[layer], k])\n"
     "        else:\n            self.K[layer], self.V[layer] = k.clone(), v.clone()\n        return self.K[layer], self.V[layer]",
     "V gets this step's v"),
]


@pytest.mark.parametrize("number, exercise, source, words", NAMED)
def test_a_common_mistake_written_in_another_way_is_named(number, exercise, source, words):
    space: dict = {"__name__": "__main__"}
    exec(source, space)
    loaded, reference = given.answers(number), given.answer(number)
    found = examine(checks.lesson(number), exercise, checks.Answer({exercise: space[exercise]}), reference,
                    wrongs=load_wrong(course().wrong(number)), namespace=loaded.objects, source=loaded.sources[exercise])
    assert words in found.mistake, report(found)


def test_a_running_sum_in_float32_is_named_and_not_only_an_index_error():
    loaded, reference = given.answers("05"), given.answer("05")
    source = loaded.sources["sample"].replace("logits.double().softmax", "logits.softmax").replace(
        "int((running <= u * running[-1]).sum())", "int((running > u).nonzero()[0].item())")
    space = dict(loaded.objects)
    exec(source, space)
    found = examine(checks.lesson("05"), "sample", reference.replaced("sample", space["sample"]), reference,
                    wrongs=load_wrong(course().wrong("05")), namespace=loaded.objects, source=loaded.sources["sample"])
    assert any(v.reason == "raised" for v in found.verdicts) and "sum in float64" in found.mistake, report(found)
