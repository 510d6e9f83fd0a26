"""The descent: rows of token ids in, weights in half precision out. One seed, fixed numbers, nothing chosen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from service.transformer.network import Encoder, Shape

__all__ = ["Recipe", "fit", "logits_of"]

_UNKNOWN_ID = 1  # the tokenizer's second special token
_BATCHES_ALIKE = 50
"""So many batches are sorted by length together: little padding, and still another order in each pass."""

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Recipe:
    """What the descent depends on.

    Attributes:
        epochs: Passes over the texts.
        rate: Highest learning rate; it rises over a tenth of the steps and falls to nothing.
        decay: Weight decay.
        dropout: Share of what a layer gives that is dropped.
        word_dropout: Share of tokens made unknown.
        batch: Texts per step.
        cut: Tokens looked at while training; longer texts are 1 in 18.
        seed: Of everything.
        threads: Threads of torch.
    """

    epochs: int = 2
    rate: float = 1e-3
    decay: float = 0.05
    dropout: float = 0.3
    word_dropout: float = 0.1
    batch: int = 64
    cut: int = 128
    seed: int = 0
    threads: int = 1

    def told(self) -> dict[str, float]:
        """Return it for config.json."""
        return asdict(self)


def _batches(rows: Rows, size: int, cut: int, rng: random.Random | None) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Yield numbers, ids and mask of texts of like length."""
    order = list(range(len(rows)))
    if rng is not None:
        rng.shuffle(order)
    groups: list[list[int]] = []
    for start in range(0, len(order), size * _BATCHES_ALIKE):
        part = sorted(order[start : start + size * _BATCHES_ALIKE], key=lambda number: len(rows[number]))
        groups += [part[at : at + size] for at in range(0, len(part), size)]
    if rng is not None:
        rng.shuffle(groups)
    for group in groups:
        width = max(1, min(cut, max(len(rows[number]) for number in group)))
        ids = torch.zeros((len(group), width), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for place, number in enumerate(group):
            row = torch.tensor(rows[number][:width], dtype=torch.int64)
            ids[place, : len(row)], mask[place, : len(row)] = row, 1
        yield group, ids, mask


def fit(rows: Rows, labels: Sequence[int], shape: Shape, recipe: Recipe, told: Callable[[str], None]) -> Encoder:
    """Return the trained network, its weights rounded to half precision as the file holds them.

    Args:
        rows: Token ids of the texts to learn from.
        labels: Their classes.
        shape: Sizes.
        recipe: How.
        told: Gets a line for each pass.
    """
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(recipe.threads)
    rng = random.Random(recipe.seed)
    network = Encoder(shape, recipe.dropout)
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    steps = recipe.epochs * -(-len(rows) // recipe.batch) + _BATCHES_ALIKE
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.rate, total_steps=steps, pct_start=0.1)
    classes = torch.tensor(labels)
    for epoch in range(recipe.epochs):
        network.train()
        total = 0.0
        for group, ids, mask in _batches(rows, recipe.batch, recipe.cut, rng):
            seen = torch.where(torch.rand(ids.shape) < recipe.word_dropout, _UNKNOWN_ID, ids)
            with torch.autocast("cpu", torch.bfloat16):
                logits = network(seen, mask)
            loss = functional.cross_entropy(logits.float(), classes[group], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(group)
        told(f"pass {epoch + 1} of {recipe.epochs}: loss {total / len(rows):.4f}")
    rounded: Encoder = network.half().float().eval()
    rounded.positions = rounded.positions.half().float()
    return rounded


def logits_of(network: Encoder, rows: Rows) -> NDArray[np.float64]:
    """Return the logits of texts."""
    result = np.zeros((len(rows), network.shape.classes))
    with torch.no_grad():
        for group, ids, mask in _batches(rows, 64, network.shape.max_tokens, None):
            result[group] = network(ids, mask).numpy()
    return result
