"""All stages on one machine with one or two GPUs: speech beside the codec, encoding, the language model beside the decoder's polish, samples.

    python3 pipeline.py --work DIR --lib DIR [--codec-seconds 380] [--lm-seconds 250]

Each stage leaves files in DIR and is skipped when they exist, so the command resumes. With two GPUs two codecs are trained, which differ
in the weight of the phase term, and the one that is understood better goes on.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


class Stages:
    def __init__(self, o):
        self.o, self.begin, self.compiled = o, time.time(), 1
        os.makedirs(o.work + "/log", exist_ok=True)

    def say(self, text):
        print("pipeline: %4.0f s %s" % (time.time() - self.begin, text), flush=True)

    def start(self, name, script, *arguments, gpu=0, nice=0):
        """Starts a stage in the background; its output goes to log/name."""
        log = open("%s/log/%s" % (self.o.work, name), "a")
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu), PYTHONUNBUFFERED="1", OMP_NUM_THREADS="2")
        command = ["nice", "-n", str(nice), sys.executable, os.path.join(HERE, script), *map(str, arguments)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        self.say("%s starts" % name)
        return name, process

    def finish(self, stage, fatal=True):
        name, process = stage
        code = process.wait()
        self.say("%s ends (%d)" % (name, code))
        if code and fatal:
            raise SystemExit("pipeline: %s failed" % name)
        return code == 0

    def word_errors(self, name, waves):
        """Runs the recogniser; the word error rate in percent."""
        if not self.finish(self.start("recognise." + name, "recognise.py", "--text", self.o.held, "--waves", waves, gpu=""), fatal=False):
            return 99.0
        return float(re.findall(r"WER ([0-9.]+)", open("%s/log/recognise.%s" % (self.o.work, name)).read())[-1])


def codecs(s, gpus):
    """Trains one codec a GPU, rehearsing the later stages meanwhile; the best one's folder."""
    o, w = s.o, s.o.work
    phases = [1.5, 0.3][:gpus]
    folders = ["%s/codec%d" % (w, i) for i in range(gpus)]
    if not os.path.exists(w + "/best"):
        running = [s.start("codec%d" % i, "codec_train.py", "--speech", w + "/speech", "--held", w + "/held", "--out", folders[i],
                           "--seconds", o.codec_seconds, "--phase", phase, gpu=i) for i, phase in enumerate(phases)]
        rehearse(s, folders[0], running)
        for stage in running:
            s.finish(stage)
        scores = []
        for i, folder in enumerate(folders):
            score = json.load(open(folder + "/score.json"))
            score["wer"] = s.word_errors("codec%d" % i, folder + "/held.npz")
            s.say("codec%d: %s" % (i, score))
            scores.append(score["wer"] - 20 * score["pitch"])
        with open(w + "/best", "w") as file:
            file.write(folders[scores.index(min(scores))])
    return open(w + "/best").read()


def rehearse(s, folder, running):
    """Runs the later stages briefly on the first checkpoint, which also fills the compiler's caches; failures are only reported."""
    w, r = s.o.work, s.o.work + "/rehearsal"
    os.makedirs(r, exist_ok=True)
    while not os.path.exists(folder + "/codec.pt"):
        if any(process.poll() for _, process in running):
            raise SystemExit("pipeline: codec failed")
        time.sleep(1)
    gpu = len(running) - 1
    ok = s.finish(s.start("rehearse.encode", "encode.py", "--speech", w + "/speech", "--codec", folder + "/codec.pt", "--out", r + "/codes.npz",
                          "--limit-shards", 60, gpu=gpu), fatal=False)
    for compiled in (1, 0):
        lm = ["lm_train.py", *model_files(s), "--codes", r + "/codes.npz", "--out", r, "--seconds", 8, "--compile", compiled]
        trained = ok and s.finish(s.start("rehearse.lm", *lm, gpu=gpu), fatal=False)
        s.compiled = compiled
        if trained:
            break
    ok = ok and trained
    ok = ok and s.finish(s.start("rehearse.generate", "generate.py", "--lm", r + "/lm.pt", "--codec", folder + "/codec.pt", "--tokenizer", s.o.tokenizer,
                                 "--text", s.o.held, "--out", r + "/spoken.npz", "--limit", 20, gpu=gpu), fatal=False)
    ok = ok and s.finish(s.start("rehearse.polish", "codec_train.py", "--speech", w + "/speech", "--held", w + "/held", "--out", r, "--seconds", 3,
                                 "--polish", folder + "/codec.pt", "--gan-from", 0.5, gpu=gpu), fatal=False)
    ok = ok and s.word_errors("rehearsal", r + "/spoken.npz") > 0
    s.say("rehearsal %s" % ("ok" if ok else "FAILED"))


def model_files(s):
    return "--text", s.o.text, "--tokenizer", s.o.tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--held", default=os.path.join(HERE, "held.txt"))
    parser.add_argument("--lib", default="")
    parser.add_argument("--codec-seconds", type=float, default=380)
    parser.add_argument("--lm-seconds", type=float, default=250)
    o = parser.parse_args()
    s, w, gpus = Stages(o), o.work, min(2, torch.cuda.device_count())
    s.say("%d GPUs, %d cores" % (gpus, os.cpu_count()))
    library = ["--lib", o.lib] if o.lib else []
    s.finish(s.start("held", "speech.py", "--text", o.held, "--out", w + "/held", "--jobs", 1, *library))
    if not os.path.exists(w + "/speech/done.json"):
        s.start("speech", "speech.py", "--text", o.text, "--out", w + "/speech", "--jobs", max(1, os.cpu_count() - 4), *library, nice=10)
    s.say("flite itself: WER %.1f %%" % s.word_errors("flite", w + "/held/000000.npz"))
    best = codecs(s, gpus)
    s.say("best codec: " + best)
    codes = ["%s/codes.%d.npz" % (w, i) for i in range(gpus)]
    lm = s.start("lm", "lm_train.py", *model_files(s), "--codes", *codes, "--out", w + "/lm", "--seconds", o.lm_seconds, "--wait",
                 "--compile", s.compiled, gpu=0)
    parts = [s.start("encode.%d" % i, "encode.py", "--speech", w + "/speech", "--codec", best + "/codec.pt", "--out", codes[i], "--part", "%d/%d" % (i, gpus), gpu=i)
             for i in range(gpus) if not os.path.exists(codes[i])]
    for part in parts:
        s.finish(part)
    polish = s.start("polish", "codec_train.py", "--speech", w + "/speech", "--held", w + "/held", "--out", w + "/polish", "--seconds", o.lm_seconds,
                     "--polish", best + "/codec.pt", "--gan-from", 0.05, "--rate", 4e-4, "--noise", 0.01, "--hours", 60, gpu=gpus - 1)
    s.finish(lm)
    s.finish(polish, fatal=False)
    s.say("polished codec: WER %.1f %%" % s.word_errors("polish", w + "/polish/held.npz"))
    for temperature in (0.7, 0.4):
        out = "%s/spoken.%s.npz" % (w, temperature)
        s.finish(s.start("generate", "generate.py", "--lm", w + "/lm/lm.pt", "--codec", w + "/polish/codec.pt", "--tokenizer", o.tokenizer, "--text", o.held,
                         "--out", out, "--temperature", temperature))
        s.say("spoken at temperature %s: WER %.1f %%" % (temperature, s.word_errors("spoken.%s" % temperature, out)))
    open(w + "/finished", "w").close()
    s.say("finished, %d shards of speech" % len(glob.glob(w + "/speech/*.npz")))


if __name__ == "__main__":
    main()
