"""Trains the language model on one GPU from encoded speech, with validation; keeps the best checkpoint.

    python3 lm_train.py --text train.txt --tokenizer tokenizer.json --codes codes.0.npz ... --out DIR --seconds 240 [--wait] [--resume lm.pt]

--resume takes an lm.pt of this script or an exported model.safetensors; with a lower --rate it polishes a trained model.
With --wait it compiles at once and then waits for the code files. OUT/lm.pt is rewritten whenever validation improves.
"""
import argparse
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import lm_file
import tokens
from lm_model import Config, LanguageModel
from speech import PHONES

BUCKETS = {128: 192, 192: 128, 384: 64}
CAPACITY = {128: 200000, 192: 120000, 384: 60000}
VALIDATION_EVERY = 150
CORRUPT = 0.06


def mini_config():
    c = Config()
    c.eos = tokens.EOS
    return c


class Bucket:
    """Items of at most `rows` rows on the device: prompt tokens, then frames; `count` and `held` split training from validation."""

    def __init__(self, rows, capacity, device):
        self.rows, self.device = rows, device
        self.tokens = torch.zeros(capacity, rows, dtype=torch.int16, device=device)
        self.codes = torch.zeros(capacity, rows, 10, dtype=torch.uint8, device=device)
        self.phones = torch.zeros(capacity, rows, 2, dtype=torch.uint8, device=device)
        self.prompt = torch.full((capacity,), 40, dtype=torch.int64, device=device)
        self.frames = torch.full((capacity,), 60, dtype=torch.int64, device=device)
        self.count = torch.full((), 100, dtype=torch.int64, device=device)
        self.base = torch.zeros((), dtype=torch.int64, device=device)
        self.picks = torch.zeros(BUCKETS[rows], dtype=torch.int64, device=device)

    def fill(self, items):
        """items: (ids, codes, phones); the first 1/100 are for validation."""
        n = min(len(items), len(self.tokens))
        text = np.zeros((n, self.rows), np.int16)
        codes = np.zeros((n, self.rows, 10), np.uint8)
        phones = np.zeros((n, self.rows, 2), np.uint8)
        prompt, frames = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for i, (ids, c, p) in enumerate(items[:n]):
            a, b = len(ids), len(ids) + len(c)
            text[i, :a], codes[i, a:b], phones[i, a:b], prompt[i], frames[i] = ids, c, p, a, len(c)
        for target, value in ((self.tokens, text), (self.codes, codes), (self.phones, phones), (self.prompt, prompt), (self.frames, frames)):
            target[:n] = torch.from_numpy(value).to(self.device)
        self.held = max(BUCKETS[self.rows], n // 100)
        self.base.fill_(self.held)
        self.count.fill_(n - self.held)
        self.size = n

    def draw(self):
        self.picks.copy_(self.base + (torch.rand(len(self.picks), device=self.device, dtype=torch.float64) * self.count).long())

    def batch(self):
        i = self.picks
        return self.tokens[i].long(), self.codes[i].long(), self.phones[i].long(), self.prompt[i], self.frames[i]


class Trainer:
    def __init__(self, o):
        self.o, self.device = o, torch.device(o.device)
        torch.manual_seed(11)
        self.model = LanguageModel(mini_config()).to(self.device)
        if o.resume:
            self.model.load_state_dict(lm_file.load(o.resume, self.model.c))
        self.phone_head = torch.nn.Linear(self.model.c.hidden, 4 * len(PHONES)).to(self.device)
        parameters = [*self.model.parameters(), *self.phone_head.parameters()]
        matrices = [p for p in parameters if p.dim() >= 2]
        others = [p for p in parameters if p.dim() < 2]
        cuda = self.device.type == "cuda"
        self.rate = torch.zeros((), device=self.device)
        self.optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}],
                                           lr=self.rate if cuda else 1e-3, betas=(0.9, 0.95), **(dict(fused=True, capturable=True) if cuda else {}))
        self.parameters = parameters
        self.buckets = {t: Bucket(t, CAPACITY[t] if cuda else 400, self.device) for t in BUCKETS}
        if o.compile:
            for layer in [*self.model.layers, *self.model.tower]:
                layer.compile(dynamic=False)
        self.graphs, self.log = {}, {}

    def loss(self, bucket, corrupt):
        """(total, terms) of the picked items."""
        c = self.model.c
        text, codes, phones, prompt, frames = bucket.batch()
        t = torch.arange(bucket.rows, device=self.device)[None]
        prompt, end = prompt[:, None], (prompt + frames)[:, None]
        is_text = t < prompt
        seen = codes
        if corrupt:
            noise = torch.rand(codes.shape[:2], device=self.device) < CORRUPT
            seen = torch.where(noise[..., None], torch.randint_like(codes, c.entries), codes)
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            h, balance = self.model.backbone(self.model.rows(text, seen, is_text))
            follow_text, follow, follow_is_text = text.roll(-1, 1), codes.roll(-1, 1), (t + 1) < prompt
            outs = self.model.residuals(h, follow_text, follow, follow_is_text)
            emits = ((t >= prompt - 1) & (t < end)).float()
            framed = ((t >= prompt - 1) & (t < end - 1)).float()
            target = torch.where(t == end - 1, c.entries, follow[..., 0])

            def mean(loss, mask):
                return (loss.view(mask.shape) * mask).sum() / mask.sum()
            first = mean(F.cross_entropy(self.model.head(h).float().flatten(0, 1), target.flatten(), reduction="none"), emits)
            rest = [mean(F.cross_entropy(head(x).float().flatten(0, 1), follow[..., k + 1].flatten(), reduction="none"), framed)
                    for k, (head, x) in enumerate(zip(self.model.heads, outs))]
            sounds = torch.cat((phones.roll(-1, 1), phones.roll(-2, 1)), -1)
            spoken = mean(F.cross_entropy(self.phone_head(h).float().view(-1, len(PHONES)), sounds.flatten(), reduction="none").view(-1, 4).mean(1), framed)
        total = first + 0.4 * rest[0] + 0.12 * sum(rest[1:]) + 0.3 * spoken + 0.01 * balance
        return total, {"c0": first, "c1": rest[0], "c2..9": sum(rest[1:]) / len(rest[1:]), "phone": spoken, "balance": balance}

    def step(self, rows):
        total, terms = self.loss(self.buckets[rows], True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)
        self.optimiser.step()
        self.log = {k: v.detach() for k, v in terms.items()}

    def capture(self):
        """Compiles and captures one graph a bucket (the learning rate is 0 meanwhile)."""
        for rows, bucket in self.buckets.items():
            begin = time.time()
            bucket.draw()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.optimiser.zero_grad(set_to_none=True)
                    self.step(rows)
            torch.cuda.current_stream().wait_stream(side)
            self.optimiser.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.step(rows)
            self.graphs[rows] = (graph, self.log)
            print("lm: %d rows captured in %.0f s" % (rows, time.time() - begin), flush=True)

    def run(self, rows):
        self.buckets[rows].draw()
        if rows in self.graphs:
            self.graphs[rows][0].replay()
            return self.graphs[rows][1]
        self.optimiser.zero_grad(set_to_none=True)
        self.step(rows)
        return self.log

    def validate(self):
        """Mean losses of the held-out items, by bucket."""
        sums = {}
        for rows, bucket in self.buckets.items():
            if bucket.size < 2 * BUCKETS[rows]:
                continue
            bucket.picks.copy_(torch.arange(BUCKETS[rows], device=self.device))
            total, terms = self.loss(bucket, False)
            for k, v in dict(terms, total=total).items():
                sums.setdefault(k, []).append(float(v.detach()))
            del total, terms
        return {k: float(np.mean(v)) for k, v in sums.items()}


def curly(text, r):
    """Now and then typographic quotes and dashes, which sound the same."""
    if r.random() < 0.1:
        text = text.replace("'", "\u2019")
        while '"' in text:
            text = text.replace('"', "\u201c", 1).replace('"', "\u201d", 1)
    return text


def read_items(o):
    """Items (ids, codes, phones) by bucket, shuffled."""
    r = random.Random(1)
    tokenizer = Tokenizer.from_file(o.tokenizer)
    lines = open(o.text, encoding="ascii").read().splitlines()
    buckets = {t: [] for t in BUCKETS}
    for path in o.codes:
        data = np.load(path)
        codes, phones, lengths, items = (data[k] for k in ("codes", "phones", "lengths", "items"))
        texts = [tokens.PROMPT % curly(tokens.shown(lines[i]).strip(), r) for i in items]
        encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
        ends = np.cumsum(lengths)
        for encoding, start, end in zip(encodings, ends - lengths, ends):
            rows = len(encoding.ids) + end - start
            for t in BUCKETS:
                if rows <= t:
                    buckets[t].append((encoding.ids, codes[start:end], phones[start:end]))
                    break
    for items in buckets.values():
        r.shuffle(items)
    print("lm: items " + " ".join("%d: %d" % (t, len(v)) for t, v in buckets.items()), flush=True)
    return buckets


def save(trainer, o, note):
    state = {k: v.bfloat16() if v.dim() >= 2 else v for k, v in trainer.model.state_dict().items()}
    torch.save({"lm": state, "note": note}, os.path.join(o.out, "lm.pt.tmp"))
    os.replace(os.path.join(o.out, "lm.pt.tmp"), os.path.join(o.out, "lm.pt"))


def schedule(share):
    return 1.0 if share < 0.15 else 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (share - 0.15) / 0.85))


def train(trainer, o):
    r = random.Random(2)
    sizes = {t: b.size * t for t, b in trainer.buckets.items() if b.size >= 2 * BUCKETS[t]}
    begin, step, best, since = time.time(), 0, 1e9, 0
    while True:
        share = (time.time() - begin) / o.seconds
        done = share >= 1
        if step % VALIDATION_EVERY == 0 or done:
            torch.cuda.synchronize() if trainer.device.type == "cuda" else None
            values = trainer.validate()
            score = values["c0"] + 0.4 * values["c1"] + 0.12 * 8 * values["c2..9"]
            print("lm: %5d %4.0f s valid " % (step, time.time() - begin) + " ".join("%s %.3f" % v for v in values.items())
                  + (" train c0 %.3f" % float(trainer.log_last["c0"]) if step else ""), flush=True)
            since = 0 if score < best else since + 1
            if score < best:
                best = score
                if step:
                    save(trainer, o, "step %d, %s" % (step, values))
            if done or (since >= 6 and share < 0.9):
                return step
        rows = r.choices(list(sizes), list(sizes.values()))[0]
        trainer.rate.fill_(o.rate * min(1, (step + 1) / 300) * schedule(share))
        trainer.log_last = trainer.run(rows)
        step += 1
        if step % 50 == 0 and trainer.device.type == "cuda":
            torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--codes", nargs="+", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--resume", default="")
    parser.add_argument("--compile", type=int, default=1)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--device", default="cuda")
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    trainer = Trainer(o)
    if trainer.device.type == "cuda":
        trainer.capture()
    while o.wait and not all(os.path.exists(p) for p in o.codes):
        time.sleep(1)
    for t, items in read_items(o).items():
        if items:
            trainer.buckets[t].fill(items)
        else:
            trainer.buckets[t].size = 0
    steps = train(trainer, o)
    print("lm: done, %d steps" % steps, flush=True)


if __name__ == "__main__":
    main()
