"""The tokenizer: every Chinese character is a token of its own, Latin text is split by byte-pair encoding.

Words of Chinese come back as hashed pairs of neighbours inside the model, which is 12 to 35 times quicker to train than
a tokenizer that learns them, and no worse. Links and @handles are replaced here as well as in the cleaning: a text that
comes in by another door must not bring personal data into the vocabulary's reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from service.text.chunks import chunking_for, sentence_ends, spans

__all__ = ["MAX_TOKENS", "PAD", "UNKNOWN", "VOCABULARY", "Piece", "build_tokenizer", "encode", "encode_whole"]

VOCABULARY = 16_384
"""Most entries of the vocabulary: about 5,000 Chinese characters, the rest Latin pieces."""

MAX_TOKENS = 512
"""Tokens that the model takes at once; longer texts are read in windows."""

PAD, UNKNOWN = "[PAD]", "[UNK]"

_HAN = "[\u3007\u3400-\u4dbf\u4e00-\u9fff]"


def build_tokenizer(texts: Iterable[str], vocabulary: int = VOCABULARY) -> Tokenizer:
    """Return a tokenizer learnt from the texts; the same texts give the same tokenizer.

    Args:
        texts: Cleaned training texts.
        vocabulary: Most entries, the two special ones included.
    """
    texts = list(texts)
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"https?://[\x21-\x7e]+|www\.[\x21-\x7e]+|@[A-Za-z0-9_]+"), " "),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_HAN), "isolated"), pre_tokenizers.Whitespace()]
    )
    # A character seen once says nothing about other texts; leaving it unknown also lets training see unknown tokens.
    counts = Counter(character for text in texts for character in text.lower() if not character.isspace())
    alphabet = [c for c, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n > 1]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, UNKNOWN],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: Iterable[str]) -> list[list[int]]:
    """Return the token ids of each text, at most MAX_TOKENS of them."""
    return [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]


class Piece(NamedTuple):
    """A text, or a window of a long one.

    Attributes:
        text: Number of the text.
        ids: Token ids.
        new: How many of them no window before it has.
    """

    text: int
    ids: list[int]
    new: int


def encode_whole(tokenizer: Tokenizer, texts: Iterable[str], max_tokens: int = MAX_TOKENS) -> list[Piece]:
    """Return the token ids of all of each text, long ones in windows as serving reads them; a text has at least one.

    Args:
        tokenizer: From `build_tokenizer`; its truncation is left aside.
        texts: Cleaned texts.
        max_tokens: Most tokens of a window.
    """
    whole = Tokenizer.from_str(tokenizer.to_str())
    whole.no_truncation()
    texts, chunking = list(texts), chunking_for(max_tokens)
    pieces: list[Piece] = []
    for number, (text, found) in enumerate(zip(texts, whole.encode_batch_fast(texts), strict=True)):
        if len(found.ids) <= max_tokens:
            pieces.append(Piece(number, found.ids, len(found.ids)))
            continue
        # Only this one knows where in the text a token is.
        slow = whole.encode(text)
        cuts = spans(sentence_ends(text, slow.offsets), chunking)
        pieces += [Piece(number, slow.ids[one.start : one.end], one.new) for one in cuts]
    return pieces
