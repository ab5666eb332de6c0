"""Speech shards on the training device: one growing pool of 16 kHz samples with phone labels, and crops of it at 44.1 kHz."""
import glob
import os
import threading
import time

import numpy as np
import torch
import torchaudio

from speech import HOP, RATE

LEVEL = 0.8 / 32768
MARGIN = 160
LABELS_PER_FRAME = 4


class Pool:
    """Loads DIR/*.npz as they appear, up to `hours`; `count` is a device tensor so that captured graphs see it grow."""

    def __init__(self, folder, hours, device, skip=()):
        self.folder, self.device, self.skip = folder, device, set(skip)
        self.capacity = int(hours * 3600 * RATE)
        self.wav = torch.zeros(self.capacity, dtype=torch.int16, device=device)
        self.phones = torch.zeros(self.capacity // HOP, dtype=torch.uint8, device=device)
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        self.starts = torch.zeros(int(hours * 3600), dtype=torch.int64, device=device)  # utterances are longer than a second on average
        self.items = torch.zeros((), dtype=torch.int64, device=device)
        self.loaded, self.samples, self.utterances, self.stopped = set(), 0, 0, False

    def scan(self):
        """Loads new shards once; False when the pool is full."""
        for path in sorted(glob.glob(os.path.join(self.folder, "[0-9]*.npz"))):
            if path in self.loaded or path.endswith(".tmp.npz") or os.path.basename(path) in self.skip:
                continue
            data = np.load(path)
            wav, phones = data["wav"], data["phones"]
            end = self.samples + len(wav)
            if end > self.capacity:
                return False
            self.wav[self.samples:end] = torch.from_numpy(wav).to(self.device)
            self.phones[self.samples // HOP:end // HOP] = torch.from_numpy(phones).to(self.device)
            starts = self.samples + np.cumsum(data["lengths"]) - data["lengths"]
            known = min(self.utterances + len(starts), len(self.starts))
            self.starts[self.utterances:known] = torch.from_numpy(starts[:known - self.utterances]).to(self.device)
            self.items.fill_(known)
            self.utterances = known
            self.samples = end
            self.loaded.add(path)
            self.count.fill_(end)
        return True

    def wait(self, seconds_of_speech):
        """Blocks until that much speech is loaded."""
        while self.samples < seconds_of_speech * RATE:
            self.scan()
            time.sleep(0.5)

    def follow(self):
        """Keeps loading in a thread until `stopped`."""
        def run():
            stream = torch.cuda.Stream() if self.device.type == "cuda" else None
            with torch.cuda.stream(stream):
                while not self.stopped and self.scan():
                    time.sleep(2)
        threading.Thread(target=run, daemon=True).start()


class Crops(torch.nn.Module):
    """Random crops, a share of them from an utterance's start: samples [B, 2048 frames] at 44.1 kHz scaled by LEVEL, and labels [B, frames, 4]."""

    def __init__(self, pool, frames, share=0.0):
        super().__init__()
        self.pool, self.frames, self.share = pool, frames, share
        self.resample = torchaudio.transforms.Resample(RATE, 44100, lowpass_filter_width=48, rolloff=0.97).to(pool.device)
        self.need = -(-frames * 2048 * 160 // 441) + 2 * MARGIN + 160
        i = torch.arange(frames * LABELS_PER_FRAME, device=pool.device)
        self.label_at = 1 + (i * 512 + 256) // 441

    def forward(self, batch):
        device = self.pool.device
        draw = torch.rand(3, batch, device=device, dtype=torch.float64)
        first = (draw[0] * ((self.pool.count - self.need) // HOP)).long() * HOP
        if self.share:
            start = self.pool.starts[(draw[1] * self.pool.items).long()] - MARGIN
            fits = (start >= 0) & (start + self.need < self.pool.count)
            first = torch.where(fits & (draw[2] < self.share), start, first)
        wav = self.pool.wav[first[:, None] + torch.arange(self.need, device=device)].float() * LEVEL
        wav = self.resample(wav)[:, 441:441 + self.frames * 2048]
        labels = self.pool.phones[first[:, None] // HOP + self.label_at].long().view(batch, self.frames, LABELS_PER_FRAME)
        return wav, labels


def upsample(wav, resample):
    """One utterance's int16 samples to [1, 2048 n] at 44.1 kHz, zero-padded to whole frames."""
    y = resample(wav.float()[None] * LEVEL)
    return torch.nn.functional.pad(y, (0, -y.shape[-1] % 2048))
