"""Speaks texts with the PyTorch models: text to codes (full recompute every frame), codes to 16 kHz and 44.1 kHz samples.

    python3 generate.py --lm lm.pt --codec codec.pt --tokenizer tokenizer.json --text held.txt --out spoken.npz [--temperature .7 --top-p .9 --seed 1]

The file holds wave_0.. (int16, 16 kHz), `frames` and `ended` of every line.
"""
import argparse

import numpy as np
import torch
import torchaudio
from tokenizers import Tokenizer

import codec_file
import lm_file
import tokens
from codec_model import Codec
from lm_model import LanguageModel
from lm_train import mini_config


def draw(logits, temperature, top_p):
    """One entry of each row of logits [B, N]."""
    if temperature == 0:
        return logits.argmax(-1)
    p, order = (logits.float() / temperature).softmax(-1).sort(-1, descending=True)
    p = p * ((p.cumsum(-1) - p) < top_p)
    return order.gather(-1, torch.multinomial(p, 1))[:, 0]


@torch.no_grad()
def speak(model, tokenizer, texts, temperature=0.7, top_p=0.9, limit=320):
    """Codes [frames, 10] and whether it ended by itself, for every text."""
    device, c = model.embed.weight.device, model.c
    prompts = [tokens.prompt_ids(tokenizer, text) for text in texts]
    length = torch.tensor([len(p) for p in prompts], device=device)
    rows = int(length.max()) + limit + 1
    count = len(texts)
    text = torch.zeros(count, rows, dtype=torch.long, device=device)
    for i, p in enumerate(prompts):
        text[i, :len(p)] = torch.tensor(p)
    codes = torch.zeros(count, rows, c.books, dtype=torch.long, device=device)
    first, each = length.clone(), torch.arange(count, device=device)
    alive = torch.ones(count, dtype=torch.bool, device=device)
    for _ in range(limit):
        used = min(rows - 1, -(-int(length.max()) // 64) * 64)
        t = torch.arange(rows, device=device)[None]
        is_text = t < first[:, None]
        h, _ = model.backbone(model.rows(text[:, :used], codes[:, :used], is_text[:, :used]))
        c0 = draw(model.head(h[each, length - 1]), temperature, top_p)
        alive = alive & (c0 != c.entries)
        if not alive.any():
            break
        now = torch.where(alive, length, rows - 1)  # finished texts write into a spare row
        codes[each, now, 0] = torch.where(alive, c0, 0)
        view = codes[:, 1:used + 1]

        def choose(k, x):
            codes[each, now, k + 1] = draw(model.heads[k](x[each, length - 1]), temperature, top_p)
        model.residuals(h, text[:, 1:used + 1], view, is_text[:, 1:used + 1], choose)
        length = length + alive
    return [codes[i, first[i]:length[i]].cpu() for i in range(count)], (~alive).tolist()


@torch.no_grad()
def render(codec, codes):
    """int16 waves at 16 kHz."""
    device = codec.decoder.model[0].conv.weight.device
    down = torchaudio.transforms.Resample(44100, 16000, lowpass_filter_width=48, rolloff=0.97).to(device)
    waves = []
    for c in codes:
        y = down(codec.decode(c[None].to(device).long())[:, 0])[0] if len(c) else torch.zeros(1600)
        waves.append((y.clamp(-1, 1) * 32767).round().to(torch.int16).cpu().numpy())
    return waves


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("lm", "codec", "tokenizer", "text", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--top-p", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=320)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    o = parser.parse_args()
    torch.manual_seed(o.seed)
    model = LanguageModel(mini_config()).to(o.device).eval()
    model.load_state_dict(lm_file.load(o.lm, model.c))
    codec = Codec().to(o.device).eval()
    codec.load_state_dict(codec_file.load(o.codec, o.device))
    lines = open(o.text).read().splitlines()
    codes, ended = speak(model, Tokenizer.from_file(o.tokenizer), lines, o.temperature, o.top_p, o.limit)
    waves = {"wave_%d" % i: w for i, w in enumerate(render(codec, codes))}
    np.savez(o.out, ended=np.array(ended), frames=np.array([len(c) for c in codes]), **waves)
    print("generate: %d of %d ended, %d frames" % (sum(ended), len(lines), sum(len(c) for c in codes)))


if __name__ == "__main__":
    main()
