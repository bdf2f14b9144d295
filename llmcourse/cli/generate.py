"""`llmcourse generate`: a prompt in, streamed text and its times out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from llmcourse.cli import show
from llmcourse.cli.options import INTERRUPTED, OUTPUT, SAMPLING, AsJson, CacheName, Device, Dtype, Model, PartsName, Quant
from llmcourse.cli.prompt import read_text, unescape

if TYPE_CHECKING:
    from llmcourse.engine.engine import Engine
    from llmcourse.engine.token_stream import Stream
    from llmcourse.engine.request import Result
    from llmcourse.workbook.mine import Mine

Prompt = Annotated[
    Optional[str],
    typer.Argument(metavar="PROMPT", help="The prompt. Left out, or -: read it from stdin.", show_default=False),
]
Chat = Annotated[
    Optional[bool],
    typer.Option("--chat/--raw", help="Chat: the default where the model has a template. Raw: continue the text.",
                 show_default=False),
]  # fmt: skip
System = Annotated[Optional[str], typer.Option(help="A system message before the prompt.", show_default=False)]
MaxTokens = Annotated[int, typer.Option(help="The most tokens to generate.", rich_help_panel=SAMPLING)]
Temperature = Annotated[float, typer.Option(help="0: always the likeliest token.", rich_help_panel=SAMPLING)]
TopK = Annotated[int, typer.Option(help="Keep the k likeliest tokens; 0: all.", rich_help_panel=SAMPLING)]
TopP = Annotated[
    float, typer.Option(help="Keep the likeliest tokens until they reach probability p.", rich_help_panel=SAMPLING)
]
MinP = Annotated[
    float, typer.Option(help="Keep tokens at least this times as likely as the likeliest.", rich_help_panel=SAMPLING)
]
Penalty = Annotated[
    float, typer.Option(help="Above 1: make tokens that occurred less likely.", rich_help_panel=SAMPLING)
]
Seed = Annotated[
    Optional[int],
    typer.Option(help="The same seed draws the same tokens.", show_default=False, rich_help_panel=SAMPLING),
]
Stop = Annotated[
    Optional[list[str]],
    typer.Option(metavar="<str>", help=r"End before this text (\n: a line end). Can be repeated.", show_default=False,
                 rich_help_panel=SAMPLING),
]  # fmt: skip
IgnoreEos = Annotated[
    bool, typer.Option("--ignore-eos", help="Go on after an end-of-text token.", rich_help_panel=SAMPLING)
]
ShowSpecial = Annotated[
    bool,
    typer.Option("--show-special", help="Show <|im_end|> and the like where the model writes them.", rich_help_panel=OUTPUT),
]
Trace = Annotated[
    bool, typer.Option("--trace", help="Show every step: ids, likeliest tokens, choice, time.", rich_help_panel=OUTPUT)
]
MineFolder = Annotated[
    Optional[str],
    typer.Option("--mine", metavar="[FOLDER]", help="Run on your own code: the labs of FOLDER (default: your work "
                 "folder) that pass their checks.", show_default=False, rich_help_panel="Your code"),
]  # fmt: skip


def generate(
    prompt: Prompt = None, chat: Chat = None, system: System = None,
    max_tokens: MaxTokens = 256, temperature: Temperature = 0.2, top_k: TopK = 0, top_p: TopP = 0.9, min_p: MinP = 0.0,
    repetition_penalty: Penalty = 1.0, seed: Seed = None, stop: Stop = None, ignore_eos: IgnoreEos = False,
    model: Model = None, device: Device = "auto", dtype: Dtype = "auto", parts: PartsName = None,
    quant: Quant = "none", cache: CacheName = "contiguous", mine: MineFolder = None, show_special: ShowSpecial = False,
    trace: Trace = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Answer a prompt, token by token.

    The text goes to stdout, one line of numbers to stderr. Ctrl-C stops early and still prints the numbers.

    [bold]Examples[/bold]

    llmcourse generate "What is the capital of France?"

    llmcourse generate "What is the capital of France?" --quant native

    llmcourse generate "The capital of France is" --raw --temperature 0 --max-tokens 8 --trace

    cat letter.txt | llmcourse generate --system "Sum the text up in one sentence." --cache window:512+4
    """
    from llmcourse.cli.engine import make_engine
    from llmcourse.engine.sampling import SamplingParams

    if trace and as_json:
        raise typer.BadParameter("choose one of --trace and --json", param_hint="--trace")
    params = SamplingParams(
        max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        repetition_penalty=repetition_penalty, seed=seed, stop=tuple(unescape(text) for text in stop or ()),
        ignore_eos=ignore_eos, skip_special_tokens=not show_special, logprobs=5 if trace else None,
    )  # fmt: skip
    text = read_text(prompt, "PROMPT")
    if mine is not None and quant != "none":
        raise typer.BadParameter("your parts compute stage by stage, on float weights: leave --quant out", param_hint="--quant")
    yours = None if mine is None else learners_parts(mine, parts)
    engine = make_engine(model, device, dtype, yours.parts if yours else parts, cache, quant)
    with engine.stream(conversation(text, chat, system, engine.tokenizer.has_chat), params) as stream:
        if trace:
            from llmcourse.cli.trace import show_trace

            interrupted = show_trace(stream)
        elif as_json:
            interrupted = drain(stream)
        else:
            interrupted = show_text(stream)
    if as_json:
        stages = {"stages": yours.as_json()} if yours else {}
        show.write_json({**json_fields(stream.result, engine), **stages})
    elif yours:
        typer.echo(f"\n{yours}", err=True)
    typer.echo(show.numbers(stream.result, engine.model), err=True)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def learners_parts(folder: str, parts: str | None) -> Mine:
    """The learner's table. Raises BadParameter together with --parts, CourseError for a folder that is not there."""
    from llmcourse.workbook.mine import load_mine

    if parts is not None:
        raise typer.BadParameter("choose one of --mine and --parts", param_hint="--mine")
    return load_mine(folder or None)


def conversation(text: str, chat: bool | None, system: str | None, has_chat: bool) -> str | list[dict[str, str]]:
    """The prompt as the engine takes it: a list of messages for a chat, else the text itself.

    Raises BadParameter for a system message without a chat.
    """
    if not (has_chat if chat is None else chat):
        if system is not None:
            raise typer.BadParameter("a system message needs a chat; raw text has none", param_hint="--system")
        return text
    messages = [] if system is None else [{"role": "system", "content": system}]
    return [*messages, {"role": "user", "content": text}]


def show_text(stream: Stream) -> bool:
    """Print the text as it comes, and the end of its line. Returns whether Ctrl-C stopped it."""
    n_shown, interrupted = 0, False
    try:
        for token in stream:
            n_shown += len(token.text)  # first, so that a Ctrl-C right after the writing does not show it twice
            show.write(token.text)
    except KeyboardInterrupt:
        stream.close()
        interrupted = True
    finally:
        text = stream.result.text
        show.write(text[n_shown:] + "\n" * (not text.endswith("\n")))
    return interrupted


def drain(stream: Stream) -> bool:
    """Run to the end in silence. Returns whether Ctrl-C stopped it."""
    try:
        for _ in stream:
            pass
    except KeyboardInterrupt:
        stream.close()
        return True
    return False


def json_fields(result: Result, engine: Engine) -> dict:
    """The fields of `generate --json`; docs/cli.md fixes them."""
    return {
        "text": result.text,
        "prompt_ids": result.prompt_ids,
        "output_ids": result.output_ids,
        "finish_reason": result.finish_reason,
        "ttft_s": result.ttft_s if result.ttft_s is None else round(result.ttft_s, 6),
        "itl_s": [round(seconds, 6) for seconds in result.itl_s],
        "tokens_per_s": round(result.tokens_per_s, 3),
        "model": engine.model.name,
        "device": str(engine.model.device),
        "dtype": show.dtype_name(engine.model),
    }
