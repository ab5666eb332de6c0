"""Trains the codec on one GPU, or polishes its decoder with the codes frozen; resumes from its last checkpoint.

    python3 codec_train.py --speech DIR --held DIR --out DIR --seconds 330 [--polish CHECKPOINT] [--gan-from 0.6] [--phase 1.5]

CHECKPOINT is a codec.pt of this script or an exported codec.pth.

Writes OUT/codec.pt (averaged weights) every minute and at the end, OUT/held.npz (the held-out sentences decoded, 16 kHz) and OUT/score.json.
A guard watches the output's level: when it leaves the target's, the last good state comes back and the learning rate is halved.
"""
import argparse
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
import torchaudio

import codec_file
import pitch
from codec_model import BOOKS, Codec, quantise
from losses import Critic, Spectra, critic_loss, deceive_loss
from pool import LABELS_PER_FRAME, Crops, Pool, upsample
from speech import PHONES

BOUND = 1.4


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speech", required=True)
    parser.add_argument("--held", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--polish", default="")
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--hours", type=float, default=30)
    parser.add_argument("--rate", type=float, default=6e-4)
    parser.add_argument("--critic-rate", type=float, default=2e-4)
    parser.add_argument("--gan-from", type=float, default=0.6)
    parser.add_argument("--gan", type=float, default=0.3)
    parser.add_argument("--match", type=float, default=1.0)
    parser.add_argument("--phase", type=float, default=1.5)
    parser.add_argument("--noise", type=float, default=0.0, help="share of residual codes replaced at random while polishing")
    parser.add_argument("--average", type=float, default=0.998, help="share of the averaged weights that a step keeps")
    parser.add_argument("--starts", type=float, default=0.0, help="share of crops that begin where an utterance does")
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


class Trainer:
    """Model, critic, their optimisers, and one training step with or without the critic."""

    def __init__(self, o):
        self.o, self.device = o, torch.device(o.device)
        torch.manual_seed(5)
        self.codec = Codec().to(self.device)
        self.phone_head = torch.nn.Linear(self.codec.geometry.latent, LABELS_PER_FRAME * len(PHONES)).to(self.device)
        self.critic, self.spectra = Critic().to(self.device), Spectra().to(self.device)
        if o.polish:
            self.codec.load_state_dict(codec_file.load(o.polish, self.device))
            q = self.codec.quantizer
            self.trained = [*q.post_module.parameters(), *q.upsample.parameters(), *self.codec.decoder.parameters()]
        else:
            # The last norm's gain stays 1, so that latents cannot shrink to please the quantiser's losses.
            fixed = self.codec.quantizer.pre_module.norm.weight
            self.trained = [p for p in [*self.codec.parameters(), *self.phone_head.parameters()] if p is not fixed]
        for p in self.codec.parameters():
            p.requires_grad_(False)
        for p in self.trained:
            p.requires_grad_(True)
        cuda = self.device.type == "cuda"
        extra = dict(fused=True, capturable=True) if cuda else {}
        self.rate = torch.zeros((), device=self.device)
        self.critic_rate = torch.zeros((), device=self.device)
        self.optimiser = torch.optim.AdamW(self.trained, lr=self.rate if cuda else 1e-4, betas=(0.8, 0.99), weight_decay=0.01, **extra)
        self.critic_optimiser = torch.optim.AdamW(self.critic.parameters(), lr=self.critic_rate if cuda else 1e-4, betas=(0.8, 0.99), weight_decay=0.01, **extra)
        self.average = [p.detach().clone() for p in self.codec.parameters()]
        self.pool = Pool(o.speech, o.hours, self.device)
        self.crops = Crops(self.pool, o.frames, o.starts)
        self.usage = torch.zeros(BOOKS, self.codec.geometry.entries, device=self.device)
        self.latents = torch.zeros(o.batch * o.frames, self.codec.geometry.latent, device=self.device)
        self.log = {}
        self.graphs = {}

    def forward(self):
        """The wave, its reconstruction before tanh, and the losses that do not compare waves."""
        o = self.o
        wav, labels = self.crops(o.batch)
        depth = torch.where(torch.rand(o.batch, device=self.device) < 0.5, torch.randint(1, BOOKS, (o.batch,), device=self.device), BOOKS - 1)
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            if o.polish:
                with torch.no_grad(), torch.autocast(self.device.type, enabled=False):
                    codes = self.codec.encode(wav[:, None])  # the codes that the language model was trained on are FP32's
                    noisy = torch.where(torch.rand(codes.shape, device=self.device) < o.noise, torch.randint_like(codes, self.codec.geometry.entries), codes)
                    noisy[..., 0] = codes[..., 0]
                    z = self.codec.dequantize(noisy)
                extra = {}
            else:
                latent = self.codec.latent(wav[:, None])
                z, semantic, codes, loss = quantise(self.codec, latent, depth)
                logits = self.phone_head(semantic).float().view(-1, len(PHONES))
                extra = {"books": loss, "phones": F.cross_entropy(logits, labels.reshape(-1)),
                         "accuracy": (logits.detach().argmax(-1) == labels.reshape(-1)).float().mean()}
                self.latents.copy_(latent.detach().flatten(0, 1))
                hits = F.one_hot(codes.flatten(0, 1).T, self.codec.geometry.entries).float().mean(1)
                self.usage.lerp_(hits, 0.02)
            raw = self.codec.render(z)[:, 0].float()
        return wav, raw, extra

    def step(self, gan):
        """One optimiser step; everything here is captured into a CUDA graph."""
        o = self.o
        wav, raw, extra = self.forward()
        y = torch.tanh(raw)
        if gan:
            self.critic.requires_grad_(True)
            with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
                loss = critic_loss(self.critic(wav)[0], self.critic(y.detach())[0])
            loss.backward()
            self.critic_optimiser.step()
            self.critic.requires_grad_(False)
            extra["critic"] = loss.detach()
        terms = self.spectra(y, wav)
        terms["bound"] = F.relu(raw.abs() - BOUND).square().mean()
        total = 4 * terms["mel"] + 3 * terms["log"] + terms["sc"] + o.phase * terms["phase"] + 20 * terms["bound"]
        if extra.get("books") is not None:
            total = total + 0.5 * extra["books"] + 0.3 * extra["phones"]
        if gan:
            with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
                scores, features = self.critic(y)
                with torch.no_grad():
                    _, real = self.critic(wav)
            extra["deceive"], extra["match"] = deceive_loss(scores, features, real)
            total = total + o.gan * extra["deceive"] + o.match * extra["match"]
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 5.0, foreach=True)
        self.optimiser.step()
        torch._foreach_lerp_(self.average, [p.detach() for p in self.codec.parameters()], 1 - o.average)
        self.log = {"total": total.detach(), "y": y.detach().std(), "x": wav.std(), "peak": raw.detach().abs().max(),
                    **{k: v.detach() for k, v in {**terms, **extra}.items()}}

    def clear(self):
        self.optimiser.zero_grad(set_to_none=True)
        self.critic_optimiser.zero_grad(set_to_none=True)

    def capture(self):
        """Captures the steps without and with the critic (learning rates are 0 meanwhile)."""
        for gan in (False, True):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.clear()
                    self.step(gan)
            torch.cuda.current_stream().wait_stream(side)
            self.clear()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.step(gan)
            self.graphs[gan] = (graph, self.log)

    def run(self, gan):
        """One step; the log's tensors are overwritten by the next."""
        if self.graphs:
            graph, log = self.graphs[gan]
            graph.replay()
            return log
        self.clear()
        self.step(gan)
        return self.log

    def revive(self):
        """Replaces entries that are hardly used by encodings of the last batch."""
        residual = self.latents
        with torch.no_grad():
            for k, book in enumerate(self.codec.quantizer.books()):
                e = book.in_proj(residual)
                dead = self.usage[k] < 0.1 / self.codec.geometry.entries
                picks = e[torch.randint(len(e), (len(dead),), device=self.device)]
                book.codebook.weight.copy_(torch.where(dead[:, None], picks, book.codebook.weight))
                self.usage[k] = torch.where(dead, 1 / self.codec.geometry.entries, self.usage[k])
                residual = residual - book.look(book.choose(e))

    def tensors(self):
        """Everything a rollback must restore."""
        state = [*self.codec.parameters(), *self.phone_head.parameters(), *self.average]
        for values in self.optimiser.state.values():
            state += [v for v in values.values() if torch.is_tensor(v)]
        return state

    def averaged(self):
        """A copy of the codec with averaged weights."""
        codec = Codec(self.codec.geometry).to(self.device).eval()
        with torch.no_grad():
            for p, a in zip(codec.parameters(), self.average):
                p.copy_(a)
        return codec


def evaluate(codec, held, device):
    """Decodes the held-out sentences: (scores, decoded waves at 16 kHz)."""
    spectra = Spectra().to(device)
    up = torchaudio.transforms.Resample(16000, 44100, lowpass_filter_width=48, rolloff=0.97).to(device)
    down = torchaudio.transforms.Resample(44100, 16000, lowpass_filter_width=48, rolloff=0.97).to(device)
    data = np.load(os.path.join(held, "000000.npz"))
    start, pairs, terms = 0, [], []
    with torch.no_grad():
        for length in data["lengths"]:
            original = torch.from_numpy(data["wav"][start:start + length]).to(device)
            start += length
            wav = upsample(original, up)
            y = codec.decode(codec.encode(wav[:, None]))[:, 0]
            terms.append({k: float(v) for k, v in spectra(y, wav).items()} | {"level": float(y.std() / wav.std()), "peak": float(y.abs().max())})
            pairs.append((original.cpu().numpy() * (0.8 / 32768), down(y)[0, :length].cpu().numpy()))
    score = {k: float(np.mean([t[k] for t in terms])) for k in terms[0]}
    score["pitch"], score["voicing"], score["cents"] = pitch.agreement(pairs)
    return score, [np.clip(np.round(b * 32767), -32768, 32767).astype(np.int16) for _, b in pairs]


def save(trainer, o, note):
    codec = trainer.averaged()
    torch.save({"codec": codec.state_dict(), "note": note}, os.path.join(o.out, "codec.pt.tmp"))
    os.replace(os.path.join(o.out, "codec.pt.tmp"), os.path.join(o.out, "codec.pt"))
    return codec


def train(trainer, o):
    begin = last_save = time.time()
    step, factor, good, bad = 0, 1.0, None, 0
    while True:
        share = (time.time() - begin) / o.seconds
        if share >= 1:
            return step
        gan = share >= o.gan_from
        scale = min(1, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share))) * factor
        trainer.rate.fill_(o.rate * scale)
        trainer.critic_rate.fill_(o.critic_rate)
        log = trainer.run(gan)
        step += 1
        if not o.polish and step % 100 == 0 and share < 0.6:
            trainer.revive()
        if step % 250 and step not in (1, 20, 100):
            continue
        values = {k: float(v) for k, v in log.items()}
        healthy = math.isfinite(values["total"]) and (step < 750 or 0.55 < values["y"] / values["x"] < 1.6)
        print("codec: %5d %5.0f s gan %d " % (step, time.time() - begin, gan) + " ".join("%s %.3f" % item for item in values.items()), flush=True)
        if healthy and step % 500 == 0:
            good = [t.clone() for t in trainer.tensors()]
        if not healthy and good is not None:
            for t, g in zip(trainer.tensors(), good):
                t.data.copy_(g)
            factor, bad = factor * 0.5, bad + 1
            print("codec: level lost, back to the last good state at half the rate (%d)" % bad, flush=True)
        if time.time() - last_save > 60:
            save(trainer, o, "step %d" % step)
            last_save = time.time()


def main():
    o = options()
    os.makedirs(o.out, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 4
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    trainer = Trainer(o)
    trainer.pool.wait(120)
    started = time.time()
    if trainer.device.type == "cuda":
        trainer.capture()
    print("codec: captured in %.0f s, %.2f h loaded" % (time.time() - started, trainer.pool.samples / 16000 / 3600), flush=True)
    trainer.pool.follow()
    steps = train(trainer, o)
    trainer.pool.stopped = True
    codec = save(trainer, o, "final, step %d" % steps)
    if not o.polish:
        p = trainer.usage / trainer.usage.sum(1, keepdim=True)
        print("codec: perplexity " + " ".join("%.0f" % v for v in torch.exp(-(p * (p + 1e-9).log()).sum(1)).tolist()))
    score, waves = evaluate(codec, o.held, trainer.device)
    np.savez(os.path.join(o.out, "held.npz"), *waves)
    with open(os.path.join(o.out, "score.json"), "w") as file:
        json.dump(dict(score, steps=steps), file)
    print("codec: held-out " + " ".join("%s %.3f" % item for item in score.items()), flush=True)


if __name__ == "__main__":
    main()
