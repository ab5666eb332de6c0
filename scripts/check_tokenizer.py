#!/usr/bin/env python3
"""Writes a reference folder for `drama3-oracle --stage tokenizer`: strings with the ids of the tokenizers package.

    pip install tokenizers            (test-time only; nothing else of this project needs Python)
    scripts/check_tokenizer.py tests/data/golden/tiny/tokenizer.json OUT [--strings 5000] [--seed 1] [--code-points]
    drama3-oracle --model tests/data/golden/tiny --reference OUT --stage tokenizer

The strings are random mixtures of words, blanks, digits, contractions, added tokens whole and cut, combining marks,
Hangul jamo, emoji sequences, and single code points of many blocks. --code-points adds one string for each code point of
planes 0 to 3 and 14, alone and between letters, blanks, digits and apostrophes. --pairs DIR first writes DIR/tokenizer.json,
the given one with a merge for every pair of bytes instead of its own, and takes the ids of that: a small vocabulary
hides most piece boundaries beside non-ASCII letters, this one shows them all.

Result with tokenizers 0.23.3, PCRE2 10.42 and utf8proc 2.8.0 (Unicode 14): --strings 20000 --code-points, 224,191 strings:
0 differ for the golden tokenizer; with --pairs 9,500 differ, each of which holds a code point that Unicode 15 or later
assigned and that the distribution's tables do not know yet.
"""
import argparse
import json
import os
import random

from tokenizers import Tokenizer

BLOCKS = [(0x01, 0x7f), (0x20, 0x7e), (0x80, 0x24f), (0x300, 0x36f), (0x370, 0x5ff), (0x600, 0x6ff), (0x900, 0xdff),
          (0xe00, 0xeff), (0x1100, 0x11ff), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2100, 0x218f), (0x3000, 0x30ff),
          (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xf900, 0xfb4f), (0xfe00, 0xffef), (0x1d100, 0x1d1ff), (0x1f1e6, 0x1f1ff),
          (0x1f300, 0x1faff), (0x2f800, 0x2fa1f)]
PARTS = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\u00a0", "\u3000", "\u200b", "\u180e", "\u0085", "\u2028",
         "'s", "'S", "'ll", "'LL", "'\u017f", "\u2019s", "'", "''", "don't", "we'Re", "the", "The", "result", "Hello",
         "1", "12", "3.14", "1,000", "!", "?!", "...", "(", ")", "--", "<", "<|", "|>", "<|im_end", "<|semantic:",
         "e\u0301", "A\u030a\u0323", "\u1100\u1161\u11a8", "\ufb01", "\u0344", "\ufb1d", "\U0001d160", "\u212b",
         "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f1fa\U0001f1f8"]


def with_all_pairs(source, folder):
    byte_chars = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
    pairs = [(a, b) for a in byte_chars for b in byte_chars]
    source["model"]["vocab"] = {token: i for i, token in enumerate(byte_chars + [a + b for a, b in pairs])}
    source["model"]["merges"] = [[a, b] for a, b in pairs]
    for i, token in enumerate(source["added_tokens"]):
        token["id"] = len(source["model"]["vocab"]) + i
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(source, file)
    return path


def random_string(draw, added):
    out = []
    for _ in range(draw.randrange(1, 40)):
        kind = draw.random()
        if kind < 0.45:
            out.append(draw.choice(PARTS))
        elif kind < 0.50:
            token = draw.choice(added)
            out.append(token if draw.random() < 0.7 else token[:draw.randrange(1, len(token))])
        elif kind < 0.75:
            out.append("".join(chr(draw.randrange(97, 123)) for _ in range(draw.randrange(1, 9))))
        else:
            first, last = draw.choice(BLOCKS)
            out.append(chr(draw.randrange(first, last + 1)))
    return "".join(out)


def code_point_strings():
    for point in list(range(1, 0xd800)) + list(range(0xe000, 0x323b0)) + list(range(0xe0000, 0xe01f0)):
        c = chr(point)
        yield f"{c}a{c}b {c} {c}1{c}'{c}s{c}{c}.\n{c}"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tokenizer")
    options.add_argument("out")
    options.add_argument("--strings", type=int, default=5000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--code-points", action="store_true")
    options.add_argument("--pairs", metavar="DIR")
    given = options.parse_args()
    with open(given.tokenizer, encoding="utf-8") as file:
        source = json.load(file)
    tokenizer = Tokenizer.from_file(with_all_pairs(source, given.pairs) if given.pairs else given.tokenizer)
    added = [token["content"] for token in source["added_tokens"]]
    draw = random.Random(given.seed)
    strings = [random_string(draw, added) for _ in range(given.strings)]
    if given.code_points:
        strings += code_point_strings()
    entries = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in strings]
    os.makedirs(given.out, exist_ok=True)
    with open(os.path.join(given.out, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(entries, file)
    print(f"{len(entries)} strings")


if __name__ == "__main__":
    main()
