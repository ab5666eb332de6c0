"""Encodes all speech shards to codes on one GPU.

    python3 encode.py --speech DIR --codec codec.pt --out codes.npz [--part I/N] [--limit-shards N]

The file holds `codes` [frames, 10] uint8, `phones` [frames, 2] uint8, `lengths` (frames per item) and `items` (line numbers).
"""
import argparse
import glob
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torchaudio

import codec_file
from codec_model import Codec
from pool import LEVEL
from speech import HOP

SAMPLES_PER_FRAME_16K = 2048 * 160 / 441


def load(path):
    with np.load(path) as data:
        return {k: data[k] for k in data.files}


def encode_group(codec, resample, waves, device):
    """Codes [frames, 10] of each int16 wave; they are padded to one length, which a causal codec does not notice."""
    longest = max(len(w) for w in waves)
    batch = np.zeros((len(waves), longest), np.int16)
    for row, wave in zip(batch, waves):
        row[:len(wave)] = wave
    with torch.no_grad():
        x = resample(torch.from_numpy(batch).to(device, non_blocking=True).float() * LEVEL)
        x = torch.nn.functional.pad(x, (0, -x.shape[-1] % 2048))
        codes = codec.encode(x[:, None]).to(torch.uint8).cpu().numpy()
    return [c[:int(np.ceil(len(w) / SAMPLES_PER_FRAME_16K))] for c, w in zip(codes, waves)]


def frame_labels(phones, frames):
    """Two labels a frame, at its quarter points."""
    at = (np.arange(frames)[:, None] * 2048 + np.array([512, 1536])) // 441
    return phones[np.minimum(at, len(phones) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speech", required=True)
    parser.add_argument("--codec", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--limit-shards", type=int, default=0)
    parser.add_argument("--batch-seconds", type=float, default=420)
    parser.add_argument("--device", default="cuda")
    o = parser.parse_args()
    index, parts = map(int, o.part.split("/"))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(o.device)
    codec = Codec().to(device).eval()
    codec.load_state_dict(codec_file.load(o.codec, device))
    resample = torchaudio.transforms.Resample(16000, 44100, lowpass_filter_width=48, rolloff=0.97).to(device)
    paths = [p for p in sorted(glob.glob(os.path.join(o.speech, "[0-9]*.npz"))) if not p.endswith(".tmp.npz")]
    paths = (paths[:o.limit_shards] if o.limit_shards else paths)[index::parts]
    begin = time.time()
    waves, labels, items = [], [], []
    with ThreadPoolExecutor(4) as pool:
        for shard in pool.map(load, paths):
            ends = np.cumsum(shard["lengths"])
            for item, start, end in zip(shard["items"], ends - shard["lengths"], ends):
                waves.append(shard["wav"][start:end])
                labels.append(shard["phones"][start // HOP:end // HOP])
                items.append(item)
    print("encode: %d utterances read in %.0f s" % (len(waves), time.time() - begin), flush=True)
    order = np.argsort([len(w) for w in waves])
    result, start = [None] * len(waves), 0
    while start < len(order):
        count = max(1, int(o.batch_seconds * 16000 / max(len(waves[order[start]]), 1)))
        group = order[start:start + count]
        for i, codes in zip(group, encode_group(codec, resample, [waves[i] for i in group], device)):
            result[i] = codes
        start += count
    np.savez(o.out + ".tmp.npz", codes=np.concatenate(result), lengths=np.array([len(c) for c in result], np.int32), items=np.array(items, np.int32),
             phones=np.concatenate([frame_labels(p, len(c)) for p, c in zip(labels, result)]))
    os.replace(o.out + ".tmp.npz", o.out)
    print("encode: %d utterances, %d frames, %.0f s" % (len(result), sum(map(len, result)), time.time() - begin), flush=True)


if __name__ == "__main__":
    main()
