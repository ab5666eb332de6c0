"""Speech by flite's slt voice: 16 kHz samples and phone labels of each sentence, trimmed, written as small shards.

    python3 speech.py --text train.txt --out DIR [--jobs N] [--lib DIR] [--limit N]

A shard DIR/NNNNNN.npz holds `wav` (int16), `phones` (uint8, one per 10 ms), `lengths` (samples per item) and `items` (line numbers).
Existing shards are kept, so the command resumes.
"""
import argparse
import ctypes
import json
import multiprocessing
import os

import numpy as np

RATE = 16000
HOP = 160
LEAD_SECONDS = 0.06
TAIL_SECONDS = 0.12
GAP_SECONDS = 0.22
PHONES = ("pau aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh").split()
ITEMS_PER_SHARD = 100


class Wave(ctypes.Structure):
    """flite's cst_wave."""
    _fields_ = [("type", ctypes.c_char_p), ("sample_rate", ctypes.c_int), ("num_samples", ctypes.c_int),
                ("num_channels", ctypes.c_int), ("samples", ctypes.POINTER(ctypes.c_short))]


class Flite:
    """The slt voice through libflite; `folder` is where the libraries lie, '' for the system's."""

    def __init__(self, folder=""):
        def load(name):
            return ctypes.CDLL(os.path.join(folder, name) if folder else name, mode=ctypes.RTLD_GLOBAL)
        if folder:
            load("libasound.so.2")
        self.lib = load("libflite.so.1")
        load("libflite_usenglish.so.1")
        load("libflite_cmulex.so.1")
        slt = load("libflite_cmu_us_slt.so.1")
        pointer, text, real = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float
        signatures = {"flite_synth_text": (pointer, [text, pointer]), "utt_wave": (ctypes.POINTER(Wave), [pointer]),
                      "utt_relation": (pointer, [pointer, text]), "relation_head": (pointer, [pointer]),
                      "item_next": (pointer, [pointer]), "item_feat_string": (text, [pointer, text]),
                      "item_feat_float": (real, [pointer, text]), "delete_utterance": (None, [pointer])}
        for name, (result, arguments) in signatures.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.lib.flite_init()
        slt.register_cmu_us_slt.restype = pointer
        slt.register_cmu_us_slt.argtypes = [pointer]
        self.voice = slt.register_cmu_us_slt(None)

    def sentence(self, text):
        """The samples (int16) and 10 ms phone labels of one sentence, silence trimmed; None when nothing is spoken."""
        lib = self.lib
        utterance = lib.flite_synth_text(text.encode("ascii"), self.voice)
        wave = lib.utt_wave(utterance).contents
        samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).copy()
        segments = []
        item = lib.relation_head(lib.utt_relation(utterance, b"Segment"))
        while item:
            segments.append((lib.item_feat_string(item, b"name").decode(), float(lib.item_feat_float(item, b"end"))))
            item = lib.item_next(item)
        lib.delete_utterance(utterance)
        spoken = [i for i, (name, _) in enumerate(segments) if name != "pau"]
        if not spoken:
            return None
        begin = segments[spoken[0] - 1][1] if spoken[0] else 0.0
        begin = max(0.0, begin - LEAD_SECONDS)
        end = min(len(samples) / RATE, segments[spoken[-1]][1] + TAIL_SECONDS)
        first = int(begin * 100) * HOP
        frames = (int(end * RATE) - first) // HOP
        labels = np.zeros(frames, np.uint8)
        start = 0.0
        for name, stop in segments:
            a, b = int(start * 100) - first // HOP, int(stop * 100) - first // HOP
            labels[max(a, 0):max(b, 0)] = PHONES.index(name) if name in PHONES else 0
            start = stop
        return samples[first:first + frames * HOP], labels

    def paragraph(self, text):
        """Like `sentence` for sentences joined by ' | ', spoken one after another with a short gap."""
        parts = [self.sentence(part) for part in text.split(" | ")]
        if any(part is None for part in parts):
            return None
        gap = int(GAP_SECONDS * 100)
        waves, labels = [], []
        for i, (wave, label) in enumerate(parts):
            if i:
                waves.append(np.zeros(gap * HOP, np.int16))
                labels.append(np.zeros(gap, np.uint8))
            waves.append(wave)
            labels.append(label)
        return np.concatenate(waves), np.concatenate(labels)


def make_shard(task):
    """Speaks one shard's sentences and writes it by rename."""
    first, lines, out = task
    waves, labels, items = [], [], []
    for i, line in enumerate(lines):
        spoken = FLITE.paragraph(line)
        if spoken is None or len(spoken[0]) < RATE // 5:
            continue
        waves.append(spoken[0])
        labels.append(spoken[1])
        items.append(first + i)
    path = os.path.join(out, "%06d" % first)
    np.savez(path + ".tmp.npz", wav=np.concatenate(waves), phones=np.concatenate(labels),
             lengths=np.array([len(w) for w in waves], np.int32), items=np.array(items, np.int32))
    os.rename(path + ".tmp.npz", path + ".npz")
    return sum(len(w) for w in waves)


def start_worker(folder):
    """Loads flite once in a pool process."""
    global FLITE
    FLITE = Flite(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--lib", default="")
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    lines = open(options.text, encoding="ascii").read().splitlines()
    if options.limit:
        lines = lines[:options.limit]
    tasks = []
    for first in range(0, len(lines), ITEMS_PER_SHARD):
        if not os.path.exists(os.path.join(options.out, "%06d.npz" % first)):
            tasks.append((first, lines[first:first + ITEMS_PER_SHARD], options.out))
    total = 0
    with multiprocessing.Pool(options.jobs, start_worker, (options.lib,)) as pool:
        for count, samples in enumerate(pool.imap_unordered(make_shard, tasks)):
            total += samples
            if count % 100 == 99:
                print("speech: %d shards, %.2f h" % (count + 1, total / RATE / 3600), flush=True)
    with open(os.path.join(options.out, "done.json"), "w") as file:
        json.dump({"hours": total / RATE / 3600}, file)
    print("speech: done, %.2f h in new shards" % (total / RATE / 3600))


if __name__ == "__main__":
    main()
