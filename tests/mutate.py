"""Break the engine on purpose, one place at a time, and see whether a test notices: `python tests/mutate.py [WORD]`.

Each mutation changes one line of the package and runs the tests named with it; every one must turn red. A copy of the
package is changed, never the package. WORD: only mutations with it in their file or text. Takes some minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
E, C, S = "tests/engine", "tests/cache", "tests/ops/test_sampling.py"
FAULTS, STREAMS, ENGINE, SCHEDULER = (f"{E}/test_{name}.py" for name in ("faults", "streams", "engine", "scheduler"))
WINDOWS = f"{C}/test_layer_windows.py"
BLOCKS, PAGED = f"{C}/test_blocks.py", f"{C}/test_paged.py {E}/test_lattice_paged.py"
MUTATIONS = [  # file below llmcourse/, what stands there, what takes its place, tests
    # Not here, since nothing can notice it: `stays = max(after, n_past)` -> `after` in the quantized cache writes numbers into the
    # ring that stand there already. Nor, on a CPU, `torch.where(step == 0, 1, step)` -> `step`: NaN becomes code 0 there, and the
    # language promises nothing elsewhere.
    ("errors.py", "if not is_no_memory(error):", "if True:", FAULTS),
    ("errors.py", "if not is_no_memory(error):", "if False:", FAULTS),
    ("errors.py", "\"can't allocate memory\", ", "", FAULTS),
    ("engine/token_stream.py", "        except BaseException:\n            self.close()", "        except BaseException:\n            pass", FAULTS),
    ("engine/token_stream.py", "self.engine.abandon(self.request)", "pass", STREAMS),
    ("engine/token_stream.py", "request.n_read = 0", "request.n_read = None", STREAMS),
    ("engine/token_stream.py", "text=request.texts[i]", "text=request.text", STREAMS),
    ("ops/sampling.py", "(logits - logits.max()) / min", "logits / min", S),
    ("ops/sampling.py", "min(max(temperature, range_.tiny), range_.max)", "temperature", STREAMS),
    ("ops/sampling.py", "max(temperature, range_.tiny), range_.max", "max(temperature, range_.tiny), 1e400", STREAMS),
    ("ops/sampling.py", "torch.where(old > 0, old / penalty, old * penalty)", "old / penalty", S),
    ("ops/sampling.py", "sorted(set(previous_ids))", "list(previous_ids)[-1:]", S),
    ("ops/sampling.py", "smallest = logits.topk(k).values[-1]", "smallest = logits.topk(k - 1 or 1).values[-1]", S),
    ("ops/sampling.py", "ties[: k - len(above)]", "ties", S),
    ("ops/sampling.py", "max(1, int((before < p).sum()))", "int((before < p).sum())", S),
    ("ops/sampling.py", "(before < p)", "(before <= p)", S),
    ("ops/sampling.py", "(1 - p) / (2 * len(logits))", "(1 - p)", S),
    ("ops/sampling.py", "logits < logits.max() + math.log(min_p)", "logits <= logits.max() + math.log(min_p)", S),
    ("ops/sampling.py", "right=True", "right=False", S),
    ("ops/sampling.py", "if not math.isfinite(top):", "if False:", S),
    ("ops/sampling.py", "    lambda logits, params: min_p_filter(logits, params.min_p),\n", "", S),
    ("ops/sampling.py", "logits = only(logits, logits.argmax()[None])", "pass", S),
    # Not in the list: `sample` without its own way at temperature 0. `probabilities` gives the same token, only more slowly.
    ("engine/request.py", "self.text += self._decoder.finish()", "self._decoder.finish()", STREAMS),
    ("engine/request.py", "text += self._decoder.finish()\n        except", "self._decoder.finish()\n        except", STREAMS),
    ("engine/request.py", "self._rewind()\n            raise", "raise", FAULTS),
    ("engine/request.py", "self.n_output + 1 == self.max_output", "self.n_output == self.max_output", ENGINE),
    ("engine/request.py", ">= MOST_UNREAD", "> MOST_UNREAD", STREAMS),
    ("engine/request.py", "return len(self.prompt_ids) + self.max_output", "return 64", STREAMS),
    ("engine/engine.py", "frozenset(model.config.eos_ids) | tokenizer.eos_ids", "frozenset(tokenizer.eos_ids) - {*model.config.eos_ids}", ENGINE),
    ("engine/engine.py", "and not params.ignore_eos", "", ENGINE),
    ("engine/engine.py", "                    self.scheduler.preempt(request, self.cache)\n                raise", "                    pass\n                raise", FAULTS),
    ("engine/engine.py", "if request.finish_reason is not None:\n                        self", "if False:\n                        self", FAULTS),
    ("engine/engine.py", "            self._raise_errors(requests)", "            pass", FAULTS),
    ("engine/engine.py", "request.stream, request.n_tokens)", "0, request.n_tokens)", ENGINE),
    ("engine/engine.py", "request.stream, request.n_tokens)", "request.stream, request.n_output)", f"{E}/test_lattice.py"),
    ("engine/engine.py", "self.model.config.context - len(ids)", "params.max_tokens", ENGINE),
    ("engine/engine.py", "        with self._turn:\n            self._forget_abandoned()", "        if True:\n            self._forget_abandoned()", STREAMS),
    ("engine/engine.py", "room=1)", "room=0)", ENGINE),
    ("engine/scheduler.py", "not overdue, not overdue and prompt,", "False, prompt,", SCHEDULER),
    ("engine/scheduler.py", "request.last_step if overdue or not prompt else 0", "0", SCHEDULER),
    ("engine/scheduler.py", "last = self._last_paused() or self.running[-1]", "last = self.running[-1]", SCHEDULER),
    ("engine/scheduler.py", "last = self._last_paused() or self.running[-1]", "last = self._last_paused() or self.running[0]", SCHEDULER),
    ("engine/scheduler.py", "self.waiting.appendleft(request)", "self.waiting.append(request)", SCHEDULER),
    ("engine/scheduler.py", "        request.n_computed = 0\n", "", FAULTS),
    ("engine/scheduler.py", "or len(step) == self.max_requests", "", STREAMS),
    ("engine/scheduler.py", "if request.slot is not None]", "]", SCHEDULER),
    ("engine/scheduler.py", "sum(not request.paused for request in self.running)", "len(self.running)", STREAMS),
    ("engine/scheduler.py", "                if paused is not None:", "                if False:", SCHEDULER),
    ("engine/runner.py", "request.n_computed += n", "request.n_computed += n - (n > 1)", f"{E}/test_lattice.py"),
    ("engine/runner.py", "int(n == request.n_missing)", "1", f"{E}/test_lattice.py"),
    ("cache/contiguous.py", "max(needed, 2 * have)", "needed", f"{C}/test_contiguous.py {WINDOWS}"),
    ("cache/contiguous.py", "keys[:, :, :have], values[:, :, :have] = slot.keys, slot.values", "keys[:, :, :have] = slot.keys", f"{C}/test_contiguous.py {WINDOWS}"),
    ("cache/contiguous.py", "return within(seen, len(k), window)", "return seen", f"{C}/test_contiguous.py {WINDOWS}"),
    ("cache/base.py", "max(0, len(K) - n + 1 - window)", "max(0, len(K) - n - window)", WINDOWS),
    ("cache/base.py", "triu(len(K) - n + 1 - window)", "triu(len(K) - n - window)", WINDOWS),
    ("cache/slots.py", "return False\n", "return True\n", f"{C}/test_contiguous.py {C}/test_quantized.py"),
    ("cache/sliding.py", "stays = stays[stays >= n_past]", "stays = stays[stays > n_past]", f"{C}/test_sliding.py {WINDOWS}"),
    ("cache/sliding.py", "(key > query - window)", "(key >= query - window)", f"{C}/test_sliding.py {WINDOWS}"),
    ("cache/sliding.py", "visible & (key > query - of_layer)", "visible", f"{C}/test_sliding.py {WINDOWS}"),
    ("cache/quantized.py", "(exact >= limit) & (exact <= row)", "(exact >= limit)", f"{C}/test_quantized.py {WINDOWS}"),
    ("cache/quantized.py", "visible & (torch.cat([quantized, exact]) > row - window)", "visible", f"{C}/test_quantized.py {WINDOWS}"),
    ("cache/coded.py", "* _ROUND_UP", "", f"{C}/test_quantized.py"),
    ("cache/blocks.py", "(len(ids) - 1) // self.size", "len(ids) // self.size", BLOCKS),
    ("cache/blocks.py", "in reversed(blocks)", "in blocks", BLOCKS),
    ("cache/blocks.py", "leaving += one.children", "pass", BLOCKS),
    ("cache/blocks.py", "if self._holders[block] > 1:", "if self._holders[block] > 2:", BLOCKS),
    ("cache/blocks.py", "self._kept.pop(block, None)", "pass", BLOCKS),
    ("cache/blocks.py", "entry.parent is parent and entry.tokens == tokens", "entry.tokens == tokens", BLOCKS),
    ("cache/paged.py", "            self.pool.release(found)\n", "", PAGED),
    ("cache/paged.py", "        if n_there == 0:", "        if True:", PAGED),
    ("cache/paged.py", ", self.values[:, old, :n_there]", ", self.values[:, new, :n_there]", PAGED),
    ("cache/paged.py", "        del table.ids[n:]\n", "", PAGED),
    ("cache/paged.py", "self.pool.release(table.blocks[keep:])", "pass", PAGED),
    ("ops/paged.py", "V = V.masked_fill(~seen[:, :, None, None], 0)", "pass", PAGED),
    ("ops/paged.py", "position >= T[:m, None] - window", "position > T[:m, None] - window", PAGED),
    ("ops/paged.py", "min(lengths) - window", "max(lengths) - window", PAGED),
    ("ops/paged.py", "total[:m] * shrink", "total[:m]", PAGED),
    ("ops/paged.py", "single.sort(", "sorted(single, ", PAGED),
    ("ops/paged.py", "new.nan_to_num(neginf=0.0)", "new", PAGED),
    ("ops/layer.py", "config.head_dim**-0.5", "config.value_dim**-0.5", f"{E}/test_heights.py"),
    ("ops/fused.py", "causal_lower_right(n, T) if visible is None and n != T else visible", "visible", WINDOWS),
    ("model/llama.py", "WeakValueDictionary()", "{}", f"{E}/test_heights.py"),
    ("batch.py", "position // block_size] * block_size + position % block_size", "position // block_size] * block_size", "tests/test_batch.py"),
]  # fmt: skip


# No bytecode: a mutation of the same length within the same second would run the one before it.
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def survives(folder: Path, file: str, old: str, new: str, tests: str) -> str:
    """What became of one mutation, in a copy of the repository: "killed", "LEFT", or "not there"."""
    path = folder / "llmcourse" / file
    source = path.read_text("utf-8")
    if source.count(old) < 1:
        return "not there"
    path.write_text(source.replace(old, new, 1), "utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not gpu", *tests.split()]
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, env=ENVIRONMENT | {"PYTHONPATH": str(folder)})
        return "killed" if done.returncode == 1 else "LEFT"
    except subprocess.TimeoutExpired:
        return "killed (hangs)"
    finally:
        path.write_text(source, "utf-8")


def main(word: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("llmcourse", "tests", "docs", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(folder) / name)
        for file, old, new, tests in MUTATIONS:
            if word in file + old:
                print(f"{survives(Path(folder), file, old, new, tests):<16}{file:<28}{old.strip()!r} -> {new.strip()!r}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
