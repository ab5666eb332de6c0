"""Losses of the codec's decoder: spectral terms over several windows, a phase-aware term, a bound before tanh, and a critic."""
import torch
import torch.nn.functional as F
from torch import nn

RATE = 44100
FLOOR = 1e-4
TOP_HZ = 8500
PHASE_HZ = 4000
MELS = {256: 24, 512: 48, 1024: 80, 2048: 120}
WINDOWS = (256, 512, 1024, 2048, 4096)
PHASE_WINDOWS = (512, 1024, 2048)


def mel_matrix(n, count, low=40.0, high=TOP_HZ):
    """Triangular mel filters [n/2+1, count], each summing to 1."""
    def mel(hz):
        return 2595 * torch.log10(torch.tensor(1 + hz / 700.0))
    edges = 700 * (10 ** (torch.linspace(mel(low), mel(high), count + 2) / 2595) - 1)
    bins = torch.arange(n // 2 + 1) * RATE / n
    rise = (bins[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[None, 2:] - bins[:, None]) / (edges[2:] - edges[1:-1])
    matrix = torch.minimum(rise, fall).clamp_min(0)
    keep = matrix.sum(0) > 0
    matrix = matrix[:, keep]
    return matrix / matrix.sum(0)


class Spectra(nn.Module):
    """Compares two waves [B, N]; returns the terms mel, log, sc (with DC and everything above TOP_HZ) and phase."""

    def __init__(self):
        super().__init__()
        for n in WINDOWS:
            window = torch.hann_window(n)
            self.register_buffer("window%d" % n, window / window.sum(), persistent=False)
        for n, count in MELS.items():
            self.register_buffer("mel%d" % n, mel_matrix(n, count), persistent=False)

    def stft(self, x, n):
        return torch.stft(x, n, n // 4, window=getattr(self, "window%d" % n), center=True, pad_mode="constant", return_complex=True).transpose(1, 2)

    def forward(self, y, x):
        mel = log = sc = phase = 0.0
        for n in WINDOWS:
            a, b = self.stft(y, n), self.stft(x, n)
            p = (a.real.square() + a.imag.square() + 1e-12).sqrt()
            q = (b.real.square() + b.imag.square() + 1e-12).sqrt()
            top = TOP_HZ * n // RATE
            sc = sc + ((p - q).square().sum((1, 2)).sqrt() / (q.square().sum((1, 2)).sqrt() + 0.02)).mean()
            log = log + ((p[..., :top] + FLOOR).log10() - (q[..., :top] + FLOOR).log10()).abs().mean()
            if n in MELS:
                matrix = getattr(self, "mel%d" % n)
                mel = mel + ((p @ matrix + FLOOR).log10() - (q @ matrix + FLOOR).log10()).abs().mean()
            if n in PHASE_WINDOWS:
                k = PHASE_HZ * n // RATE
                u = a[..., :k] * (p[..., :k] + 1e-4) ** -0.5
                v = b[..., :k] * (q[..., :k] + 1e-4) ** -0.5
                gap = u - v
                gap = (gap.real.square() + gap.imag.square() + 1e-8).sqrt().mean((1, 2))
                phase = phase + (gap / (v.abs().mean((1, 2)) + 1e-3)).mean()
        return {"mel": mel / len(MELS), "log": log / len(WINDOWS), "sc": sc / len(WINDOWS), "phase": phase / len(PHASE_WINDOWS)}


class Critic(nn.Module):
    """A discriminator over complex spectra at three resolutions, below TOP_HZ; [B, N] to lists of scores and features."""

    def __init__(self, channels=32, windows=(512, 1024, 2048)):
        super().__init__()
        self.windows = windows
        self.nets = nn.ModuleList()
        for n in windows:
            self.register_buffer("window%d" % n, torch.hann_window(n) / (n / 2) ** 0.5 * 4, persistent=False)
            layers = [nn.Conv2d(2, channels, (3, 9), padding=(1, 4))]
            for dilation in (1, 2, 4):
                layers.append(nn.Conv2d(channels, channels, (3, 9), stride=(1, 2), dilation=(dilation, 1), padding=(dilation, 4)))
            layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, 1, 3, padding=1)]
            self.nets.append(nn.ModuleList(layers))

    def forward(self, x):
        scores, features = [], []
        for n, net in zip(self.windows, self.nets):
            s = torch.stft(x, n, n // 4, window=getattr(self, "window%d" % n), pad_mode="constant", return_complex=True)[:, :TOP_HZ * n // RATE]
            h = torch.view_as_real(s).permute(0, 3, 2, 1)
            for layer in net[:-1]:
                h = F.leaky_relu(layer(h), 0.1)
                features.append(h)
            scores.append(net[-1](h))
        return scores, features


def critic_loss(real, fake):
    """Least squares: real scores to 1, fake ones to 0."""
    return sum((r.float() - 1).square().mean() + f.float().square().mean() for r, f in zip(real, fake)) / len(real)


def deceive_loss(fake, fake_features, real_features):
    """The decoder's side: (scores to 1, feature matching)."""
    score = sum((f.float() - 1).square().mean() for f in fake) / len(fake)
    match = sum((a.float() - b.float().detach()).abs().mean() / (b.float().detach().abs().mean() + 1e-3)
                for a, b in zip(fake_features, real_features)) / len(fake_features)
    return score, match
