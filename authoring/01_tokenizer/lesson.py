# %% [markdown]
# # 01 · Text becomes numbers: the tokenizer
# *About 2 hours 20 minutes: 45 minutes for this page, 95 for the lab. You need: lesson 00
# (tokens, ids, TTFT and ITL).*
#
# **The idea.** Start with single bytes. Find the pair of neighbours that is commonest in a large text, and make it
# one token; then do that again, and again. In the end a common word is one token, and a rare one is several.
#
# | letter or word | meaning |
# |---|---|
# | V | vocabulary: how many different tokens there are |
# | T | tokens in the text so far |
# | byte | a number from 0 to 255; a character takes one to four of them in UTF-8 |
# | BPE | *byte pair encoding*, the method of this lesson |
# | merge | two tokens that become one, for good |
# | rank | a merge's place in the order of learning; rank 0 was learned first |
# | piece | a part of the text that no token reaches across |

# %%
import inspect
import json
import re
from collections import Counter
from statistics import median
from time import perf_counter

from llmcourse import Engine, load_tokenizer
from llmcourse.measure.known_models import MODELS
from llmcourse.text.bpe import BPE, train_bpe, vocabulary
from llmcourse.text.corpus import speeches
from llmcourse.text.pattern import split
from llmcourse.workbook import explore, measured, plots, predict
from llmcourse.workbook.languages import sentences
from llmcourse.workbook.live import type_here
from llmcourse.workbook.merging import pair_counts, replay
from llmcourse.workbook.token_view import token_viewer, view_tokens

tokenizer = load_tokenizer()          # SmolLM2's
gpt2 = load_tokenizer("gpt2")         # GPT-2's, an older one

# %% [markdown]
# ## Why not simply words?
# The obvious plan: give every word a number. Let us collect the words of all messages of US presidents to Congress
# before 2026, and then read the next one.

# %%
# NBVAL_CHECK_OUTPUT
texts = speeches()
new = re.findall(r"\w+", texts["2026-Trump-1"])
earlier = [text for name, text in texts.items() if name < "2026"]
known = {word for text in earlier for word in re.findall(r"\w+", text)}
unknown = [word for word in new if word not in known]
print(f"{len(known):,} different words in {len(texts) - 1} speeches")
print(f"{len(unknown):,} of the {len(new):,} words of the next one are not among them; "
      "the longest:")
print(" ".join(sorted(set(unknown), key=lambda word: (-len(word), word))[:7]))

# %% [markdown]
# A table of words is never complete: names, numbers, slips of the pen. The other extreme, one number for each letter,
# knows every word and makes texts very long, and every token costs time (lesson 00). We want something between: whole
# words where they are common, smaller parts where they are not, and nothing that cannot be written.

# %% [markdown]
# ## The ground: bytes
# Below the letters lie bytes. UTF-8 writes an English letter as one byte, é as two, most of the world's letters as
# three, an emoji as four or more. There are only 256 of them, so a vocabulary that holds them all can write anything.

# %%
# NBVAL_CHECK_OUTPUT
for character in ["a", "é", "я", "日", "🙂"]:
    print(character, list(character.encode("utf-8")))

# %% [markdown]
# ## BPE by hand
# Take a tiny text: four words, which occur 5, 3, 4 and 2 times. First every word is cut into bytes (here: letters).
# Then count how often each pair of neighbours stands in the text. Check one of them by hand: "an" is once in *ban* (5
# times), once in *band* (3), twice in *banana* (4) and twice in *bandana* (2).

# %%
# NBVAL_CHECK_OUTPUT
words = {"ban": 5, "band": 3, "banana": 4, "bandana": 2}


def show_counts(step):
    """All pairs of a step with their counts, commonest first."""
    for (left, right), count in pair_counts(step.words, words).most_common():
        print(f"{left.decode():>4} + {right.decode():4} {count:3}")


steps = replay(words, 6)
show_counts(steps[0])

# %% [markdown]
# The winner becomes a token: from now on "an" is one thing. Count again. Some pairs are gone, and there are new ones,
# with the new token in them.

# %%
# NBVAL_CHECK_OUTPUT
show_counts(steps[1])

# %% [markdown]
# And so on. The picture shows all of it: one row after each merge, the new token with a thick border, and how often
# its pair stood in the text.

# %%
plots.merges(words, 6)

# %% [markdown]
# Nobody told the machine what a syllable is, and yet it found "ban", "band" and "ana". When two pairs have the same
# count someone must decide; our rule is: the smallest pair of ids. Without a rule, two runs could learn two
# vocabularies.
#
# Play: type words of your own (repeat those that should count more) and move the slider.

# %%
def merge_by_merge(text, merges):
    """The words of a text after so many merges."""
    return plots.merges(Counter(text.split()), merges)


explore(merge_by_merge, text="low low low lower lowest newest newest", merges=(0, 12, 4))

# %% [markdown]
# ## A new word
# What was learned is the *list of merges*, in order. To encode a word that was never seen, replay the list: of all
# pairs that stand in it, merge the one that was learned first; repeat until none is left.

# %%
# NBVAL_CHECK_OUTPUT
merges = train_bpe(Counter(words).elements(), 256 + 6)
small = BPE(vocabulary(merges), merges)
for word in ["band", "bandanaban", "cabana", "naan"]:
    cut = small.encode(word.encode())
    print(f"{word:11}", [small.decode([token]).decode() for token in cut])

# %% [markdown]
# Familiar parts come out whole; the rest falls into smaller ones, at worst into bytes. No word is impossible.

# %% [markdown]
# ## From six merges to thousands
# The same code, a larger text: the first twenty messages to Congress. Here are the first tokens that it learns, and
# the last.

# %%
# NBVAL_CHECK_OUTPUT
training_text = "".join(list(texts.values())[:20])
merges = train_bpe(training_text, 8192)
print("first:", [(left + right).decode() for left, right in merges[:16]])
print("last: ", [(left + right).decode() for left, right in merges[-8:]])

# %% [markdown]
# First come pieces of words, then words, and in the end whole words of the trade.
#
# How can thousands of merges take only seconds, if all pairs are counted anew after each? They are not. Every
# *different* piece of the text is kept once, with the number of times that it occurs, and after a merge only those
# pieces are counted again that held the pair. This is *incremental counting*. How much does it spare?

# %%
# NBVAL_CHECK_OUTPUT
in_text = split(training_text)
different = {piece.encode() for piece in in_text}
some = merges[:: len(merges) // 100]
held = [sum(left + right in piece for piece in different) for left, right in some]
print(f"{len(in_text):,} pieces, {len(different):,} different ones")
print(f"a merge changes at most {sum(held) / len(held):.0f} of them on average, "
      f"the first {held[0]:,}, the last {held[-1]}")

# %% [markdown]
# What does a larger vocabulary buy? Let us encode a
# text that was not in the training, the twenty-first message, with fewer or more of these merges.

# %%
unseen = list(texts.values())[20]


def bytes_per_token(bpe):
    """How many bytes of the unseen text one token holds, on average."""
    ids = bpe.encode_pieces(split(unseen))
    return len(unseen.encode()) / len(ids)


sizes = [256, 512, 1024, 2048, 4096, 8192]
firsts = [merges[: size - 256] for size in sizes]
learned = [bytes_per_token(BPE(vocabulary(first), first)) for first in firsts]
real = {
    "SmolLM2": (tokenizer.vocab_size, bytes_per_token(tokenizer.bpe)),
    "GPT-2": (gpt2.vocab_size, len(unseen.encode()) / len(gpt2.encode(unseen))),
}
plots.bytes_per_token(sizes, learned, real)

# %% [markdown]
# Every doubling makes the text shorter, in the end by less and less. Our small vocabulary nearly keeps up with the
# large ones, but mind where it was learned: from just this kind of text. Give all three a text of another kind, a page
# of Python.

# %%
code = inspect.getsource(json.decoder)


def on_code(ids):
    """Bytes of the code for each token."""
    return len(code.encode()) / len(ids)


ours = BPE(vocabulary(merges), merges)
print(f"learned here {on_code(ours.encode_pieces(split(code))):.2f} bytes per token")
print(f"GPT-2        {on_code(gpt2.encode(code)):.2f}")
print(f"SmolLM2      {on_code(tokenizer.encode(code)):.2f}")

# %% [markdown]
# A vocabulary is as good as its text is like yours. Remember this when you come to the other languages below.
#
# When does one stop? A larger vocabulary makes texts shorter, by less and less, while the model's table grows with V,
# and its last layer too. The [article that this course tests](../docs/claims.md) says that merging goes on until about
# 50,000 pieces ([C01](../docs/claims.md#c01)). Here are the two vocabularies of this lesson, those of models that the
# course counts with, and two of the largest (from their published configs), and what a table of that size would be in
# our small model.

# %%
# NBVAL_CHECK_OUTPUT
learned_by = {"GPT-2 (2019)": gpt2.vocab_size, "SmolLM2 (2024)": tokenizer.vocab_size}
others = {name: MODELS[name].config.vocab_size
          for name in ["Llama-2-7B", "Llama-3-8B", "Qwen3-8B"]}
published = {"gpt-oss (2025)": 201_088, "Gemma 3 (2025)": 262_144}
small = MODELS["SmolLM2-135M"].config
body = small.n_params - small.vocab_size * small.width
for name, V in sorted({**learned_by, **others, **published}.items(), key=lambda pair: pair[1]):
    table_size = V * small.width
    print(f"{name:15} V = {V:7,}   a table of {table_size / 1e6:5.1f} M numbers, "
          f"beside {body / 1e6:.0f} M in our model's layers")

# %%
# NBVAL_CHECK_OUTPUT
near = all(abs(V / 50_000 - 1) < 0.05 for V in learned_by.values())
larger = {name: V for name, V in {**others, **published}.items() if V > 2 * 50_000}
print("C01, merging until about 50,000 pieces:",
      "does not hold" if not near else "holds with a correction" if larger else "holds")
n_others = len(others) + len(published)
print(f"     for our two; {len(larger)} of {n_others} others have more than twice as many, "
      f"up to {max(larger.values()):,}")

# %% [markdown]
# So 50,000 is a choice and no law. A model with wide layers can afford a large table and gets shorter texts for it, above
# all in other languages than English; in ours, a table of 200,000 rows would be as large as all the layers together.

# %% [markdown]
# ## Before the merging: the split
# One thing happens first. The text is cut into *pieces*, and merges work inside a piece only. Otherwise "dog.",
# "dog!" and "dog?" would each become a token of their own, and so would every common pair of words.

# %%
# NBVAL_CHECK_OUTPUT
example = "It's 2024, and  the dog's tail wags!"
print("GPT-2:  ", split(example, "gpt2"))
print("SmolLM2:", split(example, "smollm2"))

# %% [markdown]
# A space goes with the word that follows. An ending like 's is a piece. SmolLM2 makes one change to GPT-2's rule:
# every digit is a piece of its own, so that numbers are always written the same way.

# %% [markdown]
# ## Inside a real vocabulary
# SmolLM2's vocabulary has three kinds of tokens. Look where their ids begin.

# %%
# NBVAL_CHECK_OUTPUT
special = sorted(tokenizer.special.values())
single = sorted(token for piece, token in tokenizer.bpe.vocab.items() if len(piece) == 1)
merged = [tokenizer.bpe.vocab[left + right] for left, right in tokenizer.bpe.merges]
print(f"special tokens: ids {special[0]} to {special[-1]}, such as {tokenizer.decode([2])}")
print(f"single bytes:   ids {single[0]} to {single[-1]}")
print(f"merges:         ids {merged[0]} to {merged[-1]}, in the order of learning")
print("the first ten: ", tokenizer.tokens(merged[:10]))
print("␣the, the, The: ", [tokenizer.encode(text)[0] for text in (" the", "the", "The")])

# %% [markdown]
# An id is a name and nothing more. "␣the", "the" and "The" are three strangers to the model; that they are relatives
# it must learn. (There are fewer than 256 single bytes: some bytes never occur in UTF-8, and a few rare ones have no
# token at all.)

# %%
plots.token_lengths([len(piece) for piece in tokenizer.bpe.vocab])

# %% [markdown]
# ## See it
# A coloured box is a token, the number above it its id. Colours only tell neighbours apart.

# %%
view_tokens(tokenizer, "The internationalization of unhappiness: 2024 reasons, and 1 🦜")

# %% [markdown]
# Common words are whole. The rare one falls apart. The year costs one token a digit, and the emoji is cut in the
# middle: its bytes are shown as \x…, since half an emoji cannot be shown. Now you. Try your name, a rare word, code,
# another language; look for a word that you would have cut differently.

# %%
type_here(token_viewer(tokenizer), "strawberry Strawberry  STRAWBERRY")

# %% [markdown]
# ### Three surprises for whoever writes prompts
# The model sees the cuts, never the letters. So the same question, spelled a little differently, is a different one.
# Here is what the model would say next.

# %%
engine = Engine()


def next_two(text):
    """The two likeliest next tokens of the model, with their probabilities."""
    best = engine.model(tokenizer.encode(text))[-1].float().softmax(-1).topk(2)
    pairs = zip(tokenizer.tokens(best.indices.tolist()), best.values.tolist())
    return ", ".join(f"{token} {p:.0%}" for token, p in pairs)


for text in ["The capital of France is", "The capital of France is ",
             "the capital of france is", "THE CAPITAL OF FRANCE IS"]:
    print("|".join(tokenizer.tokens(tokenizer.encode(text))))
    print("    →", next_two(text))

# %% [markdown]
# **A space at the end** costs the answer. In training, a space nearly always belonged to the word behind it, as in
# "␣Paris". One that stands alone is another token, and in training mostly a number came after it (every digit is a piece
# of its own, so the space before it stays behind). So: strip your prompts. **Small and capital letters** are other tokens, too, and rarer spellings
# fall into more pieces, about which the model learned less.
#
# The third surprise is one to be glad of. What does a user get who *types* a special token?

# %%
# NBVAL_CHECK_OUTPUT
ids = tokenizer.encode("<|im_end|>")
print("typed by a user:      ", ids, tokenizer.tokens(ids))
print("placed by the program:", tokenizer.encode("<|im_end|>", special=True))

# %% [markdown]
# Ordinary text. It must be so: if letters could become the special token, anybody could end the user's turn inside a
# question and go on as the system, as in the chat template of lesson 00. Only the program that fills in the template may
# place special tokens. (An engine that encodes the finished template in one go has this hole.)

# %% [markdown]
# ## The article's examples
# The article gives two examples. An example is a claim, so check it. First, [C02](../docs/claims.md#c02): a rare word
# splits like *un + happi + ness*.

# %%
# NBVAL_CHECK_OUTPUT
both = {"GPT-2": gpt2, "SmolLM2": tokenizer}
cuts = {name: each.tokens(each.encode("unhappiness")) for name, each in both.items()}
for name, cut in cuts.items():
    print(f"{name:8}", " + ".join(cut))
found = ["un", "happi", "ness"] in cuts.values()
print("C02, un + happi + ness:", "holds" if found else "a rare word splits, but not like that")

# %% [markdown]
# BPE knows no grammar. It cuts where the counts say, not where a linguist would.
#
# Second, [C03](../docs/claims.md#c03): "How does inference work?" becomes the ids 2437, 1374, 32278, 670, 30.

# %%
# NBVAL_CHECK_OUTPUT
printed = [2437, 1374, 32278, 670, 30]
ours = gpt2.encode("How does inference work?")
print("the printed ids: ", printed, "→", repr(gpt2.decode(printed)))
print("GPT-2's own ids: ", ours, "→", repr(gpt2.decode(ours)))
print("SmolLM2's ids:   ", tokenizer.encode("How does inference work?"))
places = enumerate(zip(printed, ours), 1)
wrong = [place for place, (theirs, right) in places if theirs != right]
print("C03, the printed ids:", f"wrong at place {wrong}" if wrong else "right")

# %% [markdown]
# A small slip, and a good lesson: ids can be checked, by anyone, in one line. Note also that the two models give the
# same sentence quite different ids. An id means nothing without its vocabulary.

# %% [markdown]
# ## What a sentence costs
# Merges are learned from counts, so they serve best whatever there was most of, and for these models that was
# English. We wrote one sentence in many languages: *My mother drinks tea every morning and reads the newspaper.*

# %%
# NBVAL_CHECK_OUTPUT
table = sentences()
counts = {language: len(tokenizer.encode(one.text)) for language, one in table.items()}
print(f"{len(table)} languages, {len({one.script for one in table.values()})} scripts")
for language in ["English", "Greek"]:
    text = table[language].text
    print(f"{language}: {text}  ({len(text)} characters, {len(text.encode())} bytes)")
print("English needs", counts["English"], "tokens")

# %% [markdown]
# **Predict.** How many tokens will the Greek sentence need? You know its length, and what its letters cost in bytes.

# %%
predict("tokens of the Greek sentence", ..., "tokens")

# %%
measured("tokens of the Greek sentence", counts["Greek"])
view_tokens(tokenizer, table["Greek"].text)

# %% [markdown]
# And the others? A bar is the number of tokens, and the factor behind it says how many times the English number that
# is. How much a tokenizer spends on a language is called its *fertility*. (Its usual unit is tokens per word; since
# not every script puts spaces between words, we compare whole sentences.)

# %%
def cost(vocabulary):
    """Tokens of the sentence in every language."""
    each = {"SmolLM2": tokenizer, "GPT-2": gpt2}[vocabulary]
    scripts = {language: one.script for language, one in table.items()}
    n_tokens = {language: len(each.encode(one.text)) for language, one in table.items()}
    return plots.languages(n_tokens, scripts)


explore(cost, vocabulary=["SmolLM2", "GPT-2"])

# %% [markdown]
# The same thought, said in another language, is many times longer for the model. A service that charges by the token
# charges so many times more. And it takes longer: here is the time that the model needs to *read* each sentence (as
# part of a prompt), measured on this machine.

# %%
def seconds_to_read(text, times=3):
    """Seconds for one pass over the sentence, the median of several."""
    ids, taken = tokenizer.encode(text), []
    for _ in range(times):
        start = perf_counter()
        engine.model(ids)
        taken.append(perf_counter() - start)
    return median(taken)


few = ["English", "Turkish", "Russian", "Greek", "Thai", "Korean", "Georgian", "Tamil",
       "Burmese"]
seconds_to_read(table["Burmese"].text)  # warm up
reading = {language: seconds_to_read(table[language].text) for language in few}
plots.reading_time({language: counts[language] for language in few}, reading,
                   ["English", "Greek", "Korean", "Tamil", "Burmese"])

# %% [markdown]
# *Writing* is dearer still, since every token waits for the one before it. So many tokens as each sentence has (the
# statement is [C04](../docs/claims.md#c04)):

# %%
writing = {}
for language in ["English", "Greek", "Burmese"]:
    n = counts[language]
    result = engine.generate(table["English"].text, temperature=0, max_tokens=n,
                             ignore_eos=True)
    writing[language] = result.ttft_s + sum(result.itl_s)
    print(f"{language:8} {n:4} tokens   {writing[language]:5.1f} s")
factor = writing["Burmese"] / writing["English"]
price = counts["Burmese"] / counts["English"]
verdict = "holds" if price > 1.5 and factor > 1.5 else "does not hold here"
print(f"C04, rare languages cost more tokens and more time: {verdict}")
print(f"     Burmese against English: {price:.0f} times the tokens, "
      f"{factor:.0f} times the seconds")

# %% [markdown]
# (The two factors need not be equal. Each answer begins with one wait for the prompt, which weighs more in a short one;
# a token far down in a text has more to look back at; and one run on a busy machine is not a measurement. What holds
# everywhere is that the tokens, not the letters, are what one waits for.)
#
# A fair word: this vocabulary was made for an English model. The large vocabularies in the list above were learned from
# a better mix of languages; there the factors shrink, and do not vanish.

# %% [markdown]
# ## Back to text, while it streams
# Decoding is the easy direction: look up each id's bytes and join them. But a chat shows tokens *as they come*, and a
# token may end in the middle of a character. Decode each one alone, and the reader sees rubbish that can never be
# taken back:

# %%
# NBVAL_CHECK_OUTPUT
stream = tokenizer.stream()
for token in tokenizer.encode("Hi 🦜 日本"):
    piece = tokenizer.token_bytes(token).hex(" ")
    alone, held = tokenizer.decode([token]), stream.push(token)
    print(f"{token:6}  {piece:12}  alone: {alone!r:6}  the engine: {held!r}")
print("at the end:", repr(stream.finish()))

# %% [markdown]
# The last column is what the engine does: bytes wait until their character is whole. (The article's
# "tokens are turned back into characters and streamed" holds, with this care.) In the lab you build such a decoder.
#
# ### To read on
# - Rico Sennrich, Barry Haddow and Alexandra Birch, [Neural Machine Translation of Rare Words with Subword
#   Units](https://arxiv.org/abs/1508.07909) (2016): where BPE came into the trade; the algorithm fills half a page.
# - Andrej Karpathy, [Let's build the GPT Tokenizer](https://www.youtube.com/watch?v=zduSFxRajkE) (2024): two hours of
#   video that end with a long list of what goes wrong because of tokens.
# - Aleksandar Petrov and others, [Language Model Tokenizers Introduce Unfairness Between
#   Languages](https://arxiv.org/abs/2305.15425) (2023): our picture of languages, with many tokenizers and numbers.
#
# ## What you can now do
# - Replay BPE on paper: count, merge, count again, with a rule for ties.
# - Explain why "␣the" and "the" have different ids, and why an id says nothing by itself.
# - Estimate what a text costs in tokens, and say who pays more.
# - Say why half a character must wait, and why a prompt should not end with a space.
#
# In the lab you write all of it: counting, merging, training, encoding, decoding, streaming. In the end *your*
# tokenizer feeds the real model.
#
# **Out loud**
# 1. You train twice on the same documents, read in another order. Must the merges be the same? What does your answer
#    need? And what if you shuffle the *lines* of each document?
# 2. Why must encoding replay the merges in the order of learning, and not simply take the longest token that fits?
# 3. A colleague prints every token with `decode([id])` and says that emoji "do not work in this model". What do you
#    tell them?
#
# <details><summary>Answers</summary>
#
# 1. Yes, if each document is cut into pieces by itself: pairs are counted inside pieces, and counts do not depend on
#    order. It needs a rule for ties that does not either. Lines are another matter: several line breaks in a row are one
#    piece, so shuffled lines have other runs of breaks, other pieces, and perhaps other merges.
# 2. The model learned from texts that were encoded so. The longest token that fits may be one that training never
#    produced at that place: to the model, the same word in an unfamiliar spelling.
# 3. The model is fine. An emoji spans several tokens, and none of them is a character alone: join the bytes before
#    decoding, or hold them back until they are whole.
#
# </details>
