"""The network as torch trains it: a small transformer encoder. Only `python -m service.transformer.train` needs it.

What a pad slot holds never reaches a real token: it is zero before the convolution, left out of the attention by its
bias, and of the pooling by the mask. Hence a text's logits do not depend on how wide its batch is, float noise apart.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

__all__ = ["FAR", "Encoder", "Shape", "positions"]

FAR = -1e4
"""Added to the attention scores of pad slots: e to that power is 0 in float32, and it can never become NaN."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the network."""

    vocabulary: int
    max_tokens: int
    width: int = 128
    heads: int = 4
    inner: int = 256
    layers: int = 2
    classes: int = 3

    def told(self) -> dict[str, int]:
        """Return them for config.json."""
        return asdict(self)


def positions(length: int, width: int) -> Tensor:
    """Return sines and cosines of the positions, [length, width]: nothing to learn, so long texts cost no examples."""
    place = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-9.210340371976184 / width))
    table = torch.zeros(length, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
    return table


class Block(nn.Module):
    """Attention and a feed-forward layer, each after a LayerNorm and around a shortcut."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.up, self.down = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return x [batch, tokens, width] one block further; bias [batch, 1, 1, tokens]."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5 + bias
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.drop(self.out(mixed))
        return x + self.drop(self.down(torch.relu(self.up(self.norm2(x)))))


class Encoder(nn.Module):
    """Embedding, a convolution over three neighbours, blocks, pooling by mean and by maximum, logits."""

    def __init__(self, shape: Shape, dropout: float = 0.2) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.conv = nn.Conv1d(shape.width, shape.width, 3, padding=1)
        self.blocks = nn.ModuleList(Block(shape, dropout) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(2 * shape.width, shape.classes)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("positions", positions(shape.max_tokens, shape.width) * 0.1, persistent=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return logits [batch, classes] for ids and mask, both [batch, tokens]."""
        kept = mask.to(torch.float32)[:, :, None]
        x = self.drop(self.embedding(ids)) * kept
        x = x + torch.relu(self.conv(x.transpose(1, 2)).transpose(1, 2)) + self.positions[: ids.shape[1]]
        bias = ((1.0 - mask.to(torch.float32)) * FAR)[:, None, None, :]
        for block in self.blocks:
            x = block(x, bias)
        x = self.norm(x)
        mean = (x * kept).sum(1) / kept.sum(1).clamp(min=1.0)
        most = (x + (1.0 - kept) * FAR).amax(1)
        # A text without tokens has one masked slot: its maximum would be FAR.
        most = most * (kept.sum(1) > 0).to(torch.float32)
        logits: Tensor = self.head(self.drop(torch.cat([mean, most], 1)))
        return logits
