"""Every error that llmcourse raises on purpose. Each message names the value that was wrong and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class CourseError(Exception):
    """Base of all errors of this package: `except CourseError` catches every one that was raised on purpose."""


class UnknownModel(CourseError):
    """A model name that is neither the default, nor a local folder, nor a reachable hub id."""


class UnsupportedModel(CourseError):
    """A model that was found but uses a feature that the engine does not implement; the message names the feature."""


class WeightMismatch(CourseError):
    """Weight files and config disagree; the message names every missing, unexpected or wrongly shaped tensor."""


class DownloadFailed(CourseError):
    """A file could not be fetched, or arrived with the wrong sha256."""


class TokenizerError(CourseError):
    """A tokenizer file or token id that cannot be used."""


class ChatTemplateError(CourseError):
    """A chat was asked of a model without a template, or its template refused the messages."""


class PromptTooLong(CourseError):
    """Prompt and requested tokens do not fit into the model's context."""


class BadSamplingParams(CourseError, ValueError):
    """A sampling parameter outside its range; the message names the parameter, its value and the range."""


class NonFiniteLogits(CourseError):
    """The model produced NaN or infinite logits; the message names the request and the position."""


class OutOfMemory(CourseError):
    """An allocation failed; the message says how many bytes were asked for, and for what."""


class CannotTruncate(CourseError):
    """A cache was asked to take tokens back that it has merged with others or overwritten."""


class EngineBusy(CourseError):
    """An engine was called from within one of its own steps: by a stage, a tokenizer or a cache that it is using."""


class DeviceUnavailable(CourseError):
    """A device or dtype that this machine's PyTorch does not offer."""


class UnknownLesson(CourseError):
    """A lesson number or an exercise that the course does not have; the message lists what it has."""


class AuthoringError(CourseError):
    """A lesson's source, its probes or its wrong answers are malformed; the message names the place and the rule."""


class UnreadableNotebook(CourseError):
    """A file that is not a notebook, or of which no cells can be read; the message says why."""


class StageFailed(CourseError):
    """A learner's stage raised while the engine used it; the message names the stage, the exercise and the line."""


# What allocators say when there is no memory: CUDA's, the CPU's on Linux, on Windows, on a Mac; and PyTorch where the
# size alone is more than it can count.
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "cannot allocate memory",
              "storage size calculation overflowed", "invalid buffer size")


def is_no_memory(error: BaseException) -> bool:
    """Whether an exception means that memory ran out. PyTorch's CPU allocators raise RuntimeErrors like any other."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(sign in said for sign in _NO_MEMORY))


@contextmanager
def naming_memory(what: str) -> Iterator[None]:
    """Turn any allocator's failure inside the block into OutOfMemory; every other exception passes as it is.

    what: what there was no memory for, the bytes if they are known, and the way out. What PyTorch said follows.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_no_memory(error):
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        raise OutOfMemory(f"no memory for {what} ({lines[0]})") from error
