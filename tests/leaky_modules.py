"""Attention as people write it: each with one mistake, and correct twins. `attnviz check` is given this file."""

import math

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    """Correct: hidden scores are −∞ before a softmax over keys. Subclasses make one mistake each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads, self.d_head = num_heads, d_out // num_heads
        self.query, self.key, self.value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("later", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (f(x).view(batch, length, self.num_heads, -1).transpose(1, 2) for f in self.layers())
        context = self.attend(q, k, v, self.later[:length, :length])
        return self.out(context.transpose(1, 2).reshape(batch, length, -1))

    def layers(self):
        return self.query, self.key, self.value

    def attend(self, q, k, v, later):
        return self.dropout(self.weights(q @ k.transpose(2, 3) / math.sqrt(self.d_head), later)) @ v

    def weights(self, scores, later):
        return scores.masked_fill(later, -math.inf).softmax(-1)


class ThreeStep(Attention):
    """Correct on paper: a softmax over everything, the future to 0, divided again."""

    def weights(self, scores, later):
        kept = scores.softmax(-1).masked_fill(later, 0)
        return kept / kept.sum(-1, keepdim=True)


class NoMask(Attention):
    def weights(self, scores, later):
        return scores.softmax(-1)


class InvertedForSDPA(Attention):
    """SDPA's boolean mask keeps what is True."""

    def attend(self, q, k, v, later):
        return scaled_dot_product_attention(q, k, v, attn_mask=later)


class RightForSDPA(Attention):
    def attend(self, q, k, v, later):
        return scaled_dot_product_attention(q, k, v, attn_mask=~later)


class OverQueries(Attention):
    def weights(self, scores, later):
        return scores.masked_fill(later, -math.inf).softmax(-2)


class NotDivided(Attention):
    def weights(self, scores, later):
        return scores.softmax(-1).masked_fill(later, 0)


class OneTooMany(Attention):
    def weights(self, scores, later):
        return scores.masked_fill(torch.ones_like(later).triu(2), -math.inf).softmax(-1)


class OneTooManyByTril(Attention):
    def weights(self, scores, later):
        return scores.masked_fill(torch.ones_like(later).tril(1) == 0, -math.inf).softmax(-1)


class BlindToItself(Attention):
    """A first token that sees nothing is NaN with −∞; with this fill it sees everything alike, itself too."""

    def attend(self, q, k, v, later):
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d_head)
        hidden = torch.ones_like(later).triu(0)
        return torch.nan_to_num(scores.masked_fill(hidden, -math.inf).softmax(-1)) @ v

    def layers(self):  # the query of a token moves its own row
        return (lambda x: self.query(torch.ones_like(x))), self.key, self.value


class FillZero(Attention):
    def weights(self, scores, later):
        return scores.masked_fill(later, 0.0).softmax(-1)


class FillTwelve(Attention):
    def weights(self, scores, later):
        return scores.masked_fill(later, -12.0).softmax(-1)


class FillTenThousand(Attention):
    def weights(self, scores, later):
        return scores.masked_fill(later, -1e4).softmax(-1)


class AddTenThousand(Attention):
    def weights(self, scores, later):
        return (scores + later.to(scores.dtype) * -1e4).softmax(-1)


class AddInfinity(Attention):
    def weights(self, scores, later):
        return (scores + torch.zeros_like(scores).masked_fill(later, -math.inf)).softmax(-1)


class FlattenedBatch(Attention):
    def forward(self, x):
        batch, length, d = x.shape
        flat = x.reshape(1, batch * length, d)
        q, k, v = (f(flat).view(1, batch * length, self.num_heads, -1).transpose(1, 2) for f in self.layers())
        context = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(context.transpose(1, 2).reshape(batch, length, -1))


# ------------------------------------------------------------------------------------------- as they are asked for


class OneHead(nn.Module):
    """A single head, by the names that a book gives."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.inside = Attention(d_in, d_out, context_length, dropout, 1, qkv_bias)

    def forward(self, x):
        return self.inside(x)


class SideBySide(nn.Module):
    """Single heads side by side."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(OneHead(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], -1)


class Config:
    n_embd, n_head, block_size, dropout = 48, 3, 64, 0.1


class FromConfig(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inside = Attention(config.n_embd, config.n_embd, config.block_size, config.dropout, config.n_head)

    def forward(self, x):
        return self.inside(x)


def from_config():
    return FromConfig(Config())


class ReturnsTuple(OneHead):
    def forward(self, x):
        return None, x.shape, torch.zeros(3), self.inside(x)


class WantsThree(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.inside = Attention(embed_dim, embed_dim, 64, 0.0, num_heads)

    def forward(self, query, key, value):
        assert query is key
        assert key is value
        return self.inside(query)


class CausalMultihead(nn.Module):
    """nn.MultiheadAttention, whose boolean mask hides what is True."""

    def __init__(self, embed_dim, num_heads, batch_first=False):
        super().__init__()
        self.inside = nn.MultiheadAttention(embed_dim, num_heads, batch_first=batch_first)

    def forward(self, x):
        return self.inside(x, x, x, attn_mask=torch.ones(x.shape[1], x.shape[1], device=x.device).triu(1).bool())


def running_mean(x):
    """A function of inputs, without weights."""
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, device=x.device)[:, None].to(x)


def mean(x):
    return x + x.mean(1, keepdim=True)


# ------------------------------------------------------------------------------------------------- what cannot be run


class Raises(OneHead):
    def forward(self, x):
        raise ValueError("not today")


class WrongShape(OneHead):
    def forward(self, x):
        return self.inside(x).transpose(0, 1)


class Restless(OneHead):
    """Draws something although it is told that this is no training."""

    def forward(self, x):
        return nn.functional.dropout(self.inside(x), 0.5, training=True)


class AlwaysNaN(OneHead):
    def forward(self, x):
        return self.inside(x) * math.nan


class FloatOnly(OneHead):
    def forward(self, x):
        return self.inside(x.float())


def three_step(x):
    """Three-step without projections: queries and values are the inputs, keys the inputs with their features turned."""
    weights = (x @ x.roll(1, -1).transpose(1, 2) / math.sqrt(x.shape[-1])).softmax(-1).tril()
    return weights / weights.sum(-1, keepdim=True) @ x


def neg_inf(x):
    """The same with −∞."""
    scores = x @ x.roll(1, -1).transpose(1, 2) / math.sqrt(x.shape[-1])
    later = torch.ones(x.shape[1], x.shape[1], device=x.device).triu(1).bool()
    return scores.masked_fill(later, -math.inf).softmax(-1) @ x


def stops(x):
    """Without derivatives."""
    return x.detach()


class InFloat32(Attention):
    """Correct, and computed in float32 whatever it is given."""

    def weights(self, scores, later):
        kept = scores.softmax(-1, dtype=torch.float32).masked_fill(later, 0)
        return (kept / kept.sum(-1, keepdim=True)).to(scores.dtype)


class ReusesItsOutput(NoMask):
    """Writes every output into one buffer."""

    def forward(self, x):
        out = super().forward(x)
        kept = getattr(self, "kept", None)
        if kept is None or kept.shape != out.shape or kept.dtype != out.dtype:
            self.kept = torch.empty_like(out)
        return self.kept.copy_(out)


class ConstantBeside(NoMask):
    """A feature that is always huge, as a padded vocabulary has."""

    def forward(self, x):
        out = super().forward(x).clone()
        out[..., -1] = torch.finfo(out.dtype).min
        return out


class LateAndSparse(nn.Module):
    """Leaks between few tokens of many."""

    def forward(self, x):
        out = x.cumsum(1)
        out[:, 255:-1:256] += x[:, 256::256]
        return out


class RotatesByComplexNumbers(Attention):
    """Rotary positions from a complex buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        angles = torch.outer(torch.arange(64), 1 / 100 ** (torch.arange(self.d_head // 2) / self.d_head))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def attend(self, q, k, v, later):
        def turned(part):
            pairs = torch.view_as_complex(part.float().unflatten(-1, (-1, 2)).contiguous())
            return torch.view_as_real(pairs * self.turns[: part.shape[2]]).flatten(-2).to(part)

        return super().attend(turned(q), turned(k), v, later)


class Exits(OneHead):
    def forward(self, x):
        raise SystemExit(0)


class NoMoreThanTwo(NoMask):
    """Leaks, and refuses a batch of many."""

    def forward(self, x):
        if len(x) > 40:
            raise ValueError("too many")
        return super().forward(x)


def triangle(d_in, d_out, context_length, dropout, num_heads, above):
    made = Attention(d_in, d_out, context_length, dropout, num_heads)
    made.later = torch.ones(context_length, context_length).triu(above).bool()
    return made


def right_triangle(d_in, d_out, context_length, dropout, num_heads):
    return triangle(d_in, d_out, context_length, dropout, num_heads, 1)


def wrong_triangle(d_in, d_out, context_length, dropout, num_heads):
    return triangle(d_in, d_out, context_length, dropout, num_heads, 2)


def strict_triangle(d_in, d_out, context_length, dropout, num_heads):
    return triangle(d_in, d_out, context_length, dropout, num_heads, 0)


def prints(x):
    print("noise", end="")  # noqa: T201
    return x.cumsum(1)
