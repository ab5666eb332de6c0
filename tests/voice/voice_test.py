"""The embedded voice: its size, one sentence's digest and duration, texts that end by themselves, a long text spoken in pieces.

Usage: voice_test.py SAY MODEL [--quick]   (on the CPU, whose samples are the same for every thread count and instruction set)
With --quick, for slow builds: the sentence and one other text.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tool_process import Tally, run_tool  # noqa: E402

MOST_BYTES = 18_000_000
SENTENCE = "Good evening, this is a test."
SEED = 7
FRAMES = 40
DIGEST = "0eb729ea2f3d01bb59339302845e9e7cb433bce4d2616e89c9282c6dcb5cd9cf"
# Text and the seconds within which its speech lies: flite's duration times 0.8 to 1.25, rounded outwards.
SPOKEN = [("Could you tell me where the nearest hospital is?", 1.9, 3.4), ("The meeting starts at 3:45 pm on Friday.", 2.2, 4.0),
          ("That will be $12.50, please.", 2.2, 4.2), ("In 1984, Mr. Brown moved to Chicago.", 2.3, 4.4)]
PARAGRAPH = ("The old lighthouse stood at the end of a narrow road. Every evening, the keeper climbed ninety steps to light the lamp. "
             "He had done so for years, and he never missed a night. One winter, a storm came from the north. The waves were higher "
             "than the wall, and the wind broke two windows.")


def speak(tally, say, model, text, folder, seed=SEED):
    """drama3-say's report on one text; None when it failed."""
    wav, report = folder / "out.wav", folder / "out.json"
    outcome = run_tool(say, ["-q", "-m", str(model), "--device", "cpu", "--seed", str(seed), "-o", str(wav), "--json=" + str(report), "--", text])
    return json.loads(report.read_text()) if tally.check(f"speaks {text[:30]!r}", outcome.code == 0, outcome) else None


def main():
    say, model, tally = sys.argv[1], pathlib.Path(sys.argv[2]), Tally()
    quick = sys.argv[3:] == ["--quick"]
    size = sum(path.stat().st_size for path in model.iterdir())
    tally.check("size of all files", size <= MOST_BYTES, f"{size} bytes, at most {MOST_BYTES}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        said = speak(tally, say, model, SENTENCE, folder)
        if said:
            tally.check("frames of the sentence", said["frames"] == FRAMES, said["frames"])
            tally.check("digest of the sentence", said["sha256"] == DIGEST, said["sha256"])
        for text, least, most in SPOKEN[:1] if quick else SPOKEN:
            said = speak(tally, say, model, text, folder)
            if said:
                tally.check(f"ends by itself: {text!r}", said["finish_reason"] == "stop", said["finish_reason"])
                tally.check(f"duration: {text!r}", least <= said["seconds"] <= most, said["seconds"])
                tally.check(f"below full scale: {text!r}", said["peak"] < 1 and said["clipped_samples"] == 0, said["peak"])
        said = None if quick else speak(tally, say, model, PARAGRAPH, folder)
        if said:
            tally.check("a paragraph in pieces", len(said["chunks"]) > 1, said["chunks"])
            tally.check("every piece ends by itself", all(c["finish_reason"] == "stop" for c in said["chunks"]), said["chunks"])
            tally.check("the pieces are the text", "".join(c["text"] for c in said["chunks"]) == PARAGRAPH, said["chunks"])
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
