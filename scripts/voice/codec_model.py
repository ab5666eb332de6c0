"""The codec in PyTorch, for training: encoder, residual quantiser, decoder; module names are the checkpoint's key names."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from snake import snake

BOOKS = 10
ENTRIES = 256
CODE_DIM = 8
STRIDES = (2, 4, 8, 8)
RATES = (8, 8, 4, 2)
SAMPLES_PER_FRAME = 2048


class Geometry:
    """Widths and depths; `window` counts frames, `encoder_window` encoder columns (four a frame)."""

    def __init__(self, encoder_dim=8, latent=128, decoder_dim=256, heads=2, ffn=256, layers=3, pre_layers=1, encoder_layers=1,
                 window=16, encoder_window=64, entries=ENTRIES):
        self.encoder_dim, self.latent, self.decoder_dim, self.heads, self.ffn = encoder_dim, latent, decoder_dim, heads, ffn
        self.layers, self.pre_layers, self.encoder_layers = layers, pre_layers, encoder_layers
        self.window, self.encoder_window, self.entries = window, encoder_window, entries


class Conv(nn.Module):
    """A causal convolution over [B, C, T]; weight-normed only in the exported file."""

    def __init__(self, inputs, outputs, kernel, stride=1, dilation=1, groups=1):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride, dilation=dilation, groups=groups)
        nn.init.trunc_normal_(self.conv.weight, std=1 / math.sqrt(inputs // groups * kernel))
        nn.init.zeros_(self.conv.bias)
        self.left = (kernel - 1) * dilation - (stride - 1)

    def forward(self, x):
        return self.conv(F.pad(x, (self.left, 0)))


class TransposedConv(nn.Module):
    """A transposed convolution whose last kernel - stride samples are cut."""

    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride=stride)
        nn.init.trunc_normal_(self.conv.weight, std=1 / math.sqrt(inputs * kernel / stride))
        nn.init.zeros_(self.conv.bias)
        self.cut = kernel - stride

    def forward(self, x):
        y = self.conv(x)
        return y[..., :y.shape[-1] - self.cut] if self.cut else y


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x):
        return snake(x, self.alpha)


class ResidualUnit(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.block = nn.Sequential(Snake(channels), Conv(channels, channels, 7, dilation=dilation), Snake(channels), Conv(channels, channels, 1))
        self.block[3].conv.weight.data *= 0.3

    def forward(self, x):
        return x + self.block(x)


class ConvNeXt(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((channels,), 0.1))
        self.dwconv = Conv(channels, channels, 7, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)

    def forward(self, x):
        y = self.norm(self.dwconv(x).transpose(1, 2))
        return x + (self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))).transpose(1, 2)


class RmsNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        y = x.float()
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class Scale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((channels,), 0.3))


class Attention(nn.Module):
    """Window-limited causal attention; interleaved rotary pairs with BF16-rounded tables."""

    def __init__(self, channels, heads, window):
        super().__init__()
        self.heads, self.window = heads, window
        self.wqkv = nn.Linear(channels, 3 * channels, bias=False)
        self.wo = nn.Linear(channels, channels, bias=False)

    def forward(self, x):
        batch, rows, channels = x.shape
        size = channels // self.heads
        q, k, v = self.wqkv(x).view(batch, rows, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        angle = torch.arange(rows, device=x.device, dtype=torch.float32)[:, None] * 10000.0 ** (
            -torch.arange(0, size, 2, device=x.device, dtype=torch.float32) / size)
        cos, sin = angle.cos().bfloat16().float(), angle.sin().bfloat16().float()

        def rotate(t):
            a, b = t[..., 0::2].float(), t[..., 1::2].float()
            return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(v.dtype)
        i = torch.arange(rows, device=x.device)
        seen = (i[None] <= i[:, None]) & (i[None] > i[:, None] - self.window)
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, attn_mask=seen)
        return self.wo(y.transpose(1, 2).reshape(batch, rows, channels))


class FeedForward(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.w1 = nn.Linear(channels, width, bias=False)
        self.w3 = nn.Linear(channels, width, bias=False)
        self.w2 = nn.Linear(width, channels, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, channels, heads, width, window):
        super().__init__()
        self.attention = Attention(channels, heads, window)
        self.feed_forward = FeedForward(channels, width)
        self.ffn_norm = RmsNorm(channels)
        self.attention_norm = RmsNorm(channels)
        self.attention_layer_scale = Scale(channels)
        self.ffn_layer_scale = Scale(channels)

    def forward(self, x):
        x = x + self.attention_layer_scale.gamma * self.attention(self.attention_norm(x))
        return x + self.ffn_layer_scale.gamma * self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    """Layers over time on [B, C, T]."""

    def __init__(self, channels, heads, width, window, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer(channels, heads, width, window) for _ in range(layers))
        self.norm = RmsNorm(channels)

    def forward(self, x):
        x = x.transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x).transpose(1, 2)


class EncoderBlock(nn.Module):
    def __init__(self, channels, stride, tail=None):
        super().__init__()
        units = [ResidualUnit(channels, d) for d in (1, 3, 9)] + [Snake(channels), Conv(channels, 2 * channels, 2 * stride, stride=stride)]
        self.block = nn.Sequential(*units, *([tail] if tail else []))

    def forward(self, x):
        return self.block(x)


class Encoder(nn.Module):
    def __init__(self, g):
        super().__init__()
        blocks, width = [Conv(1, g.encoder_dim, 7)], g.encoder_dim
        for i, stride in enumerate(STRIDES):
            last = i == len(STRIDES) - 1
            tail = Transformer(2 * width, 2 * width // 64, g.ffn, g.encoder_window, g.encoder_layers) if last else None
            blocks.append(EncoderBlock(width, stride, tail))
            width *= 2
        self.block = nn.Sequential(*blocks, Snake(width), Conv(width, g.latent, 3))

    def forward(self, x):
        return self.block(x)


class DecoderBlock(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        half = channels // 2
        self.block = nn.Sequential(Snake(channels), TransposedConv(channels, half, 2 * stride, stride), *[ResidualUnit(half, d) for d in (1, 3, 9)])

    def forward(self, x):
        return self.block(x)


class Decoder(nn.Module):
    """Latents [B, D, 4 T] to the samples BEFORE tanh."""

    def __init__(self, g):
        super().__init__()
        widths = [g.decoder_dim >> i for i in range(len(RATES) + 1)]
        blocks = [DecoderBlock(w, s) for w, s in zip(widths, RATES)]
        self.model = nn.Sequential(Conv(g.latent, widths[0], 7), *blocks, Snake(widths[-1]), Conv(widths[-1], 1, 7))
        self.model[-1].conv.weight.data *= 0.25

    def forward(self, x):
        for module in self.model[:-1]:
            x = module(x)
        with torch.autocast(x.device.type, enabled=False):
            return self.model[-1](x.float())


class Projection(nn.Module):
    """A 1x1 convolution kept as a matrix; exported with its weight norm."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.orthogonal_(self.weight)

    def forward(self, x):
        return x @ self.weight.T + self.bias


class Book(nn.Module):
    """One codebook: project to 8, nearest entry by cosine, project back."""

    def __init__(self, latent, entries):
        super().__init__()
        self.in_proj = Projection(latent, CODE_DIM)
        self.out_proj = Projection(CODE_DIM, latent)
        self.out_proj.weight.data.copy_(self.in_proj.weight.data.T)
        self.codebook = nn.Embedding(entries, CODE_DIM)
        self.codebook.weight.data *= 0.3

    def choose(self, e):
        return (F.normalize(e, dim=-1) @ F.normalize(self.codebook.weight, dim=-1).T).argmax(-1)

    def look(self, code):
        return self.out_proj(self.codebook(code))


class Books(nn.Module):
    def __init__(self, count, latent, entries):
        super().__init__()
        self.quantizers = nn.ModuleList(Book(latent, entries) for _ in range(count))


def resampling(channels, up):
    stages = []
    for _ in range(2):
        conv = TransposedConv(channels, channels, 2, 2) if up else Conv(channels, channels, 2, stride=2)
        stages.append(nn.Sequential(conv, ConvNeXt(channels)))
    return nn.Sequential(*stages)


class Quantizer(nn.Module):
    def __init__(self, g):
        super().__init__()
        self.semantic_quantizer = Books(1, g.latent, g.entries)
        self.quantizer = Books(BOOKS - 1, g.latent, g.entries)
        self.downsample = resampling(g.latent, False)
        self.upsample = resampling(g.latent, True)
        self.pre_module = Transformer(g.latent, g.heads, g.ffn, g.window, g.pre_layers)
        self.post_module = Transformer(g.latent, g.heads, g.ffn, g.window, g.layers)

    def books(self):
        return [*self.semantic_quantizer.quantizers, *self.quantizer.quantizers]


class Codec(nn.Module):
    """Samples [B, 1, 2048 T] to codes [B, T, 10] and back."""

    def __init__(self, geometry=None):
        super().__init__()
        g = geometry or Geometry()
        self.geometry = g
        self.encoder, self.quantizer, self.decoder = Encoder(g), Quantizer(g), Decoder(g)

    def latent(self, wav):
        """The latents [B, T, D] before quantisation."""
        return self.quantizer.pre_module(self.quantizer.downsample(self.encoder(wav))).transpose(1, 2).float()

    def encode(self, wav):
        """Codes [B, T, 10]."""
        residual, codes = self.latent(wav), []
        for book in self.quantizer.books():
            code = book.choose(book.in_proj(residual))
            residual = residual - book.look(code)
            codes.append(code)
        return torch.stack(codes, -1)

    def dequantize(self, codes, depth=None):
        """Latents [B, T, D] of codes; `depth` [B] keeps that many residual books of each item."""
        z = 0
        for k, book in enumerate(self.quantizer.books()):
            part = book.look(codes[..., k])
            z = z + (part if depth is None or k == 0 else part * (depth >= k)[:, None, None])
        return z

    def render(self, z):
        """Samples before tanh, [B, 1, 2048 T], from quantised latents [B, T, D]."""
        q = self.quantizer
        return self.decoder(q.upsample(q.post_module(z.transpose(1, 2))))

    def decode(self, codes):
        return torch.tanh(self.render(self.dequantize(codes)))


def quantise(codec, z, depth):
    """Quantises latents [B, T, D] for training: straight-through latents, the semantic part, codes, and the quantiser's loss.

    depth [B]: residual books kept of each item. The loss is commitment + codebook terms in the 8-wide space plus, in the
    latent space, the error left after every book, so that each book does quantise the residual.
    """
    with torch.autocast(z.device.type, enabled=False):
        residual, total, loss, codes, semantic = z, 0, 0, [], None
        plain = 0
        for k, book in enumerate(codec.quantizer.books()):
            e = book.in_proj(residual)
            code = book.choose(e)
            entry = book.codebook(code)
            loss = loss + 0.25 * F.mse_loss(e, entry.detach()) + F.mse_loss(entry, e.detach())
            part = book.out_proj(e + (entry - e).detach())
            true = book.out_proj(entry)
            plain = plain + true
            loss = loss + 5 * F.mse_loss(plain, z.detach())
            residual = residual - part
            total = total + (part if k == 0 else part * (depth >= k)[:, None, None])
            codes.append(code)
            semantic = part if k == 0 else semantic
        loss = loss + F.mse_loss(z, plain.detach())
    return total, semantic, torch.stack(codes, -1), loss
