"""The language model in PyTorch, for training and as the reference: backbone (gated DeltaNet, attention, experts) and tower."""
import math

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 64
BLOCK = 16


class Config:
    """Sizes; the defaults are the mini voice's."""

    def __init__(self, hidden=128, kinds="gggaggga", heads=2, kv_heads=1, head_dim=256, rotary=64, theta=1e4, key_heads=1, value_heads=2,
                 state=128, experts=6, top=2, expert_width=128, shared_width=128, vocab=1024, semantic_start=768, entries=256, books=10,
                 tower_heads=2, tower_kv=1, tower_head_dim=64, tower_width=128, tower_rotary=32, tower_theta=1e4, shared_layers=4,
                 residual_entries=256, eps=1e-6):
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})


def linear(inputs, outputs, scale=1.0):
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=scale / math.sqrt(inputs))
    return layer


def rms(x, eps):
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


class Norm(nn.Module):
    """RMS norm; `centred` norms multiply by 1 + weight."""

    def __init__(self, size, eps, centred):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size) if centred else torch.ones(size))
        self.eps, self.centred = eps, centred

    def forward(self, x):
        return rms(x, self.eps) * (self.weight + 1 if self.centred else self.weight)


def angles(rows, rotary, theta, device):
    """cos and sin [rows, rotary/2]."""
    a = torch.arange(rows, device=device, dtype=torch.float32)[:, None] * theta ** (-torch.arange(0, rotary, 2, device=device, dtype=torch.float32) / rotary)
    return a.cos(), a.sin()


def rotate_halves(x, cos, sin, rotary):
    a, b, rest = x[..., :rotary // 2], x[..., rotary // 2:rotary], x[..., rotary:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)


def rotate_pairs(x, cos, sin, rotary):
    a, b = x[..., 0:rotary:2], x[..., 1:rotary:2]
    return torch.cat((torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2), x[..., rotary:]), -1)


def attend(q, k, v):
    """Causal attention, [B, heads, T, d] with fewer key heads repeated consecutively."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_proj = linear(c.hidden, 2 * c.heads * c.head_dim)
        self.k_proj = linear(c.hidden, c.kv_heads * c.head_dim)
        self.v_proj = linear(c.hidden, c.kv_heads * c.head_dim)
        self.o_proj = linear(c.heads * c.head_dim, c.hidden, 0.3)
        self.q_norm, self.k_norm = Norm(c.head_dim, c.eps, True), Norm(c.head_dim, c.eps, True)

    def forward(self, x):
        c = self.c
        batch, rows, _ = x.shape
        q, gate = self.q_proj(x).view(batch, rows, c.heads, 2, c.head_dim).unbind(3)
        k = self.k_proj(x).view(batch, rows, c.kv_heads, c.head_dim)
        v = self.v_proj(x).view(batch, rows, c.kv_heads, c.head_dim)
        cos, sin = angles(rows, c.rotary, c.theta, x.device)
        q = rotate_halves(self.q_norm(q).transpose(1, 2), cos, sin, c.rotary).to(v.dtype)
        k = rotate_halves(self.k_norm(k).transpose(1, 2), cos, sin, c.rotary).to(v.dtype)
        return self.o_proj(attend(q, k, v.transpose(1, 2)) * torch.sigmoid(gate.flatten(2)))


class UnitLowerInverse(torch.autograd.Function):
    """(I + L)^-1 of strictly lower L [..., 64, 64], by 16-row blocks and merges."""

    @staticmethod
    def forward(ctx, lower):
        n = lower.shape[-1]
        eye = torch.eye(BLOCK, device=lower.device, dtype=lower.dtype)
        parts = []
        for i in range(0, n, BLOCK):
            power = lower[..., i:i + BLOCK, i:i + BLOCK]
            inverse = eye - power
            for _ in range(3):
                power = power @ power
                inverse = inverse @ (eye + power)
            parts.append(inverse)
        size = BLOCK
        while size < n:
            merged = []
            for j in range(0, len(parts), 2):
                a, b = parts[j], parts[j + 1]
                r = j * size
                corner = -b @ lower[..., r + size:r + 2 * size, r:r + size] @ a
                merged.append(torch.cat((torch.cat((a, torch.zeros_like(a)), -1), torch.cat((corner, b), -1)), -2))
            parts, size = merged, 2 * size
        ctx.save_for_backward(parts[0])
        return parts[0]

    @staticmethod
    def backward(ctx, grad):
        inverse, = ctx.saved_tensors
        t = inverse.transpose(-1, -2).contiguous()
        return -(t @ grad.contiguous() @ t).tril(-1)


def delta_rule(q, k, v, beta, g):
    """The gated delta rule from an empty state, in chunks: q, k [B, H, T, dk] normalised and scaled, v [B, H, T, dv], beta, g [B, H, T]."""
    batch, heads, rows, size = q.shape
    chunks = rows // CHUNK
    q, k, v = (t.contiguous().view(batch, heads, chunks, CHUNK, -1) for t in (q, k, v))
    beta, g = (t.contiguous().view(batch, heads, chunks, CHUNK) for t in (beta, g))
    mask = torch.ones(CHUNK, CHUNK, device=q.device, dtype=torch.bool).tril()
    total = (g[..., None, :] * mask).sum(-1)
    gap = (total[..., :, None] - total[..., None, :]).masked_fill(~mask, 0)
    decay = gap.exp() * mask
    strict = decay.tril(-1)
    inverse = UnitLowerInverse.apply(beta[..., None] * (k @ k.transpose(-1, -2)) * strict)
    u = inverse @ (beta[..., None] * v)
    w = inverse @ ((beta * total.exp())[..., None] * k)
    scores = (q @ k.transpose(-1, -2)) * decay
    q_in = q * total.exp()[..., None]
    last = total[..., -1:]
    k_out = k * (last - total).exp()[..., None]
    state = torch.zeros(batch, heads, size, v.shape[-1], device=q.device, dtype=q.dtype)
    out = []
    for i in range(chunks):
        fresh = u[:, :, i] - w[:, :, i] @ state
        out.append(q_in[:, :, i] @ state + scores[:, :, i] @ fresh)
        if i + 1 < chunks:
            state = last[:, :, i, :, None].exp() * state + k_out[:, :, i].transpose(-1, -2) @ fresh
    return torch.cat(out, 2)


class DeltaNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        keys, values = c.key_heads * c.state, c.value_heads * c.state
        self.in_proj_qkv = linear(c.hidden, 2 * keys + values)
        self.in_proj_z = linear(c.hidden, values)
        self.in_proj_b = linear(c.hidden, c.value_heads)
        self.in_proj_a = linear(c.hidden, c.value_heads)
        self.conv = nn.Parameter(torch.randn(4, 2 * keys + values) * 0.2)
        self.conv.data[3] += 0.6
        self.A_log = nn.Parameter(torch.log(torch.linspace(1, 4, c.value_heads)))
        self.dt_bias = nn.Parameter(torch.linspace(-5, -2, c.value_heads))
        self.norm = Norm(c.state, c.eps, False)
        self.out_proj = linear(values, c.hidden, 0.3)

    def forward(self, x):
        c = self.c
        batch, rows, _ = x.shape
        pad = -rows % CHUNK
        mixed = F.pad(self.in_proj_qkv(x).float(), (0, 0, 3, pad))
        mixed = F.silu(sum(mixed[:, i:i + rows + pad] * self.conv[i] for i in range(4)))
        keys = c.key_heads * c.state
        q, k, v = (t.unflatten(-1, (-1, c.state)).transpose(1, 2) for t in mixed.split([keys, keys, c.value_heads * c.state], -1))
        q, k = (t * torch.rsqrt(t.square().sum(-1, keepdim=True) + 1e-6) for t in (q, k))
        q, k = (t.repeat_interleave(c.value_heads // c.key_heads, 1) for t in (q * c.state ** -0.5, k))
        beta = torch.sigmoid(self.in_proj_b(x).float())
        g = -self.A_log.exp() * F.softplus(self.in_proj_a(x).float() + self.dt_bias)
        beta, g = (F.pad(t.transpose(1, 2), (0, pad)) for t in (beta, g))
        with torch.autocast(x.device.type, enabled=False):
            y = delta_rule(q, k, v, beta, g)[:, :, :rows].transpose(1, 2)
        z = self.in_proj_z(x).view(batch, rows, c.value_heads, c.state)
        return self.out_proj((self.norm(y) * F.silu(z.float())).flatten(2))


def quantise_rows(x):
    """x [..., 128 n] through e4m3 with one scale per 128 values, as the FP8 experts see it."""
    groups = x.float().unflatten(-1, (-1, 128))
    scale = groups.abs().amax(-1, keepdim=True).clamp_min(1e-10) / 448
    return ((groups / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() * scale).flatten(-2)


class Experts(nn.Module):
    """Routed experts, all evaluated and weighted, plus the shared one; returns (output, balance, chosen)."""

    def __init__(self, c):
        super().__init__()
        self.c, self.quantised = c, False
        self.gate = linear(c.hidden, c.experts)
        self.gate_up = nn.Parameter(torch.randn(c.experts, 2 * c.expert_width, c.hidden) / math.sqrt(c.hidden))
        self.down = nn.Parameter(torch.randn(c.experts, c.hidden, c.expert_width) * (0.3 / math.sqrt(c.expert_width)))
        self.shared_gate = linear(c.hidden, c.shared_width)
        self.shared_up = linear(c.hidden, c.shared_width)
        self.shared_down = linear(c.shared_width, c.hidden, 0.3)
        self.shared_expert_gate = linear(c.hidden, 1)

    def forward(self, x):
        c = self.c
        p = self.gate(x).float().softmax(-1)
        best, chosen = p.topk(c.top, -1)
        hot = F.one_hot(chosen, c.experts).to(p.dtype)
        weight = ((best / best.sum(-1, keepdim=True))[..., None] * hot).sum(-2)
        balance = c.experts * (p.flatten(0, -2).mean(0) * hot.sum(-2).flatten(0, -2).mean(0) / c.top).sum()
        rows = quantise_rows(x) if self.quantised else x
        gate, up = (rows @ self.gate_up.flatten(0, 1).to(x.dtype).T).unflatten(-1, (c.experts, 2, c.expert_width)).unbind(-2)
        act = F.silu(gate) * up
        act = quantise_rows(act.flatten(-2)).unflatten(-1, (c.experts, -1)) if self.quantised else act
        act = (act * weight[..., None].to(act.dtype)).flatten(-2)
        routed = act @ self.down.permute(0, 2, 1).flatten(0, 1).to(act.dtype)
        shared = self.shared_down(F.silu(self.shared_gate(x)) * self.shared_up(x))
        return routed + torch.sigmoid(self.shared_expert_gate(x)) * shared, balance, chosen


class BackboneLayer(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.input_layernorm = Norm(c.hidden, c.eps, True)
        self.post_attention_layernorm = Norm(c.hidden, c.eps, True)
        self.mixer = Attention(c) if kind == "a" else DeltaNet(c)
        self.mlp = Experts(c)

    def forward(self, x):
        x = x + self.mixer(self.input_layernorm(x))
        y, balance, chosen = self.mlp(self.post_attention_layernorm(x))
        return x + y, balance, chosen


class TowerLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.enorm, self.hnorm, self.out_norm = (Norm(c.hidden, c.eps, False) for _ in range(3))
        self.eh_proj = linear(2 * c.hidden, c.hidden)
        self.attention_norm, self.ffn_norm = Norm(c.hidden, c.eps, False), Norm(c.hidden, c.eps, False)
        self.wqkv = linear(c.hidden, (c.tower_heads + 2 * c.tower_kv) * c.tower_head_dim)
        self.wo = linear(c.tower_heads * c.tower_head_dim, c.hidden, 0.5)
        self.q_norm, self.k_norm = Norm(c.tower_head_dim, c.eps, False), Norm(c.tower_head_dim, c.eps, False)
        self.w1, self.w3 = linear(c.hidden, c.tower_width), linear(c.hidden, c.tower_width)
        self.w2 = linear(c.tower_width, c.hidden, 0.5)

    def forward(self, e, x):
        c = self.c
        y = self.eh_proj(torch.cat((self.enorm(e), self.hnorm(x)), -1))
        qkv = self.wqkv(self.attention_norm(y)).unflatten(-1, (-1, c.tower_head_dim)).transpose(1, 2)
        q, k, v = qkv.split([c.tower_heads, c.tower_kv, c.tower_kv], 1)
        cos, sin = angles(x.shape[1], c.tower_rotary, c.tower_theta, x.device)
        q = rotate_pairs(self.q_norm(q), cos, sin, c.tower_rotary).to(v.dtype)
        k = rotate_pairs(self.k_norm(k), cos, sin, c.tower_rotary).to(v.dtype)
        y = y + self.wo(attend(q, k, v))
        h = self.ffn_norm(y)
        return self.out_norm(y + self.w2(F.silu(self.w1(h)) * self.w3(h)))


class LanguageModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c.vocab, c.hidden)
        self.codes = nn.Embedding(c.books * c.entries, c.hidden)
        for table in (self.embed, self.codes):
            nn.init.normal_(table.weight, std=0.5)
        self.layers = nn.ModuleList(BackboneLayer(c, kind) for kind in c.kinds)
        self.norm = Norm(c.hidden, c.eps, True)
        self.head = linear(c.hidden, c.entries + 1)
        self.tower = nn.ModuleList(TowerLayer(c) for _ in range(c.shared_layers + c.books - 1))
        self.heads = nn.ModuleList(linear(c.hidden, c.residual_entries) for _ in range(c.books - 1))

    def rows(self, tokens, codes, is_text):
        """Backbone rows [B, T, H]: tokens [B, T] where is_text, else frames codes [B, T, 10]."""
        c = self.c
        frame = (self.embed(c.semantic_start + codes[..., 0]) + self.codes(c.entries + codes[..., 1])) * 0.5 ** 0.5
        return torch.where(is_text[..., None], self.embed(tokens), frame)

    def backbone(self, x):
        """The final norm's output and the mean balance term."""
        balance = 0
        for layer in self.layers:
            x, b, _ = layer(x)
            balance = balance + b
        return self.norm(x), balance / len(self.layers)

    def look_ahead(self, k, tokens, codes, is_text):
        """The tower's embedding of what follows each row, for codebook table k."""
        return torch.where(is_text[..., None], self.embed(tokens), self.codes(k * self.c.entries + codes[..., k]))

    def residuals(self, h, tokens, codes, is_text, choose=None):
        """Outputs of the nine residual layers; tokens, codes, is_text describe the FOLLOWING row. `choose(k, out)` may fill codes[..., k + 1]."""
        outs, x = [], h
        for i, layer in enumerate(self.tower):
            k = max(0, i - self.c.shared_layers)
            x = layer(self.look_ahead(k, tokens, codes, is_text), x)
            if i >= self.c.shared_layers:
                outs.append(x)
                if choose:
                    choose(k, x)
        return outs
