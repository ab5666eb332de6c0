"""Word and character error rates of spoken sentences by pocketsphinx's general English model (its Python package, or the command).

    python3 recognise.py --text held.txt --waves held.npz [--jobs N]
"""
import argparse
import multiprocessing
import os
import re
import subprocess
import tempfile
import wave

import numpy as np


def words(text):
    return re.sub(r"[^a-z' ]+", " ", text.lower()).split()


def distance(a, b):
    """Edit distance of two sequences."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def padded(samples):
    return np.concatenate((np.zeros(3200, np.int16), samples, np.zeros(3200, np.int16)))


def hear(samples):
    """The words heard in int16 samples at 16 kHz, by the package or, where it is missing, by the command."""
    try:
        import pocketsphinx
    except ImportError:
        return hear_by_command(samples)
    samples = padded(samples)
    global DECODER
    if "DECODER" not in globals():
        DECODER = pocketsphinx.Decoder(samprate=16000, loglevel="FATAL")
    DECODER.start_utt()
    DECODER.process_raw(samples.tobytes(), full_utt=True)
    DECODER.end_utt()
    found = DECODER.hyp()
    return found.hypstr if found else ""


def hear_by_command(samples):
    """Like `hear`, by Debian's pocketsphinx_continuous."""
    samples = padded(samples)
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        with wave.open(file.name, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16000)
            out.writeframes(samples.tobytes())
        result = subprocess.run(["pocketsphinx_continuous", "-infile", file.name, "-logfn", "/dev/null"], capture_output=True, text=True, check=True)
    return " ".join(result.stdout.split("\n")).strip()


def rates(texts, waves, jobs, ear=hear):
    """(word error rate, character error rate, heard texts)."""
    with multiprocessing.Pool(jobs) as pool:
        heard = pool.map(ear, waves, chunksize=1)
    wrong = letters = count = length = 0
    for text, got in zip(texts, heard):
        a, b = words(text), words(got)
        wrong += distance(a, b)
        count += len(a)
        letters += distance(" ".join(a), " ".join(b))
        length += len(" ".join(a))
    return wrong / count, letters / length, heard


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True)
    parser.add_argument("--waves", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    o = parser.parse_args()
    data = np.load(o.waves)
    names = [name for name in data.files if data[name].ndim == 1 and data[name].dtype == np.int16 and name not in ("wav", "phones")]
    waves = [data[name] for name in names]
    if "wav" in data.files:
        waves = np.split(data["wav"], np.cumsum(data["lengths"])[:-1])
    texts = open(o.text).read().splitlines()
    wer, cer, heard = rates(texts, waves, o.jobs)
    for text, got in zip(texts, heard):
        print("  %-62s | %s" % (text, got))
    print("%s: WER %.1f %% CER %.1f %%" % (o.waves, 100 * wer, 100 * cer), flush=True)


if __name__ == "__main__":
    main()
