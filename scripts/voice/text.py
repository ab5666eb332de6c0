"""Training sentences from WordNet's examples and glosses and from templates; the held-out sentences never appear.

    python3 text.py --wordnet /usr/share/wordnet --held held.txt dev.txt --out train.txt [--everyday N] [--numeric N] [--figures N] [--lists N] [--paragraphs N] [--seed N]

One item a line, printable ASCII; sentences of a paragraph are joined by ' | '. WordNet is Princeton's, free to use and copy.
"""
import argparse
import os
import random
import re

import everyday

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST = 130
ALLOWED = re.compile(r"[A-Za-z0-9 ,.?!'\-:;\"%$]+")
BARRED = re.compile(r"sex|rape|rapi|fuck|shit|cunt|penis|vagin|genital|anus|anal\b|breast|nipple|testic|scrot|clitor|vulva|pubic|copulat|orgasm|masturb|erotic|"
                    r"prostitut|whore|slut|bitch|bastard|nigg|negro|coon\b|kike|spic\b|gook|chink|wop\b|faggot|dyke|homosex|lesbian|\bgay|queer|"
                    r"pervert|incest|pedoph|porn|nud[ei]|naked|urin|feces|faec|excre|defecat|turd|piss|fart|semen|sperm|coit|lust|"
                    r"nazi|hitler|holocaust|genocid|suicid|jew|muslim|islam|terroris|slave|lynch|savage|heroin|cocaine|marijuana|cannabis|"
                    r"retard|moron|idiot|cripple|obscen|vulgar|offensive|disparag|derogat|ethnic slur|abort|murder|kill|torture|"
                    r"\barse|\bass\b|asshole|\btit\b|\btits\b|\bcock\b|\bdick\b|\bprick\b|\bpussy\b|\bcum\b|virgin|condom|menstru|castrat|circumcis", re.I)


def synsets(folder):
    """Pairs (words, gloss) of every WordNet synset, with its part of speech."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(os.path.join(folder, "data." + part), encoding="latin-1"):
            if line.startswith("  "):
                continue
            data, gloss = line.split(" | ", 1)
            fields = data.split()
            words = [re.sub(r"\(.*\)", "", w).replace("_", " ") for w in fields[4:4 + 2 * int(fields[3], 16):2]]
            yield part, words, gloss.strip()


def sentence(text):
    """`text` with a capital at the start and a stop at the end."""
    text = everyday.upper_first(re.sub(r"\s+", " ", text).strip(" ;,:"))
    return text if text and text[-1] in ".?!" else text + "."


def usable(text):
    """Whether an item can be spoken: length, characters, no shouting, no long figures, nothing barred."""
    words = text.split()
    return (2 <= len(words) <= 24 and len(text) <= LONGEST and ALLOWED.fullmatch(text) and not BARRED.search(text)
            and not re.search(r"[A-Z]{3}|\d{5}|\w{18}", text) and text.count('"') % 2 == 0)


def wordnet(folder, r):
    """Example sentences and defining sentences."""
    examples, glosses = [], []
    for part, words, gloss in synsets(folder):
        if BARRED.search(gloss) or any(BARRED.search(w) for w in words):
            continue
        for example in re.findall(r'"([^"]+)"', gloss):
            examples.append(sentence(example.split("- ")[0]))
        definition = re.sub(r"\([^)]*\)", "", gloss.split('"')[0]).split(";")[0].strip(" ;,:")
        word = r.choice(words)
        an = "an" if word[:1].lower() in "aeiou" else "a"
        if part == "noun" and not word[:1].isupper():
            forms = ["%s %s is %s" % (an, word, definition), "The word %s means %s" % (word, definition), definition, "%s: %s" % (word, definition)]
        elif part == "verb":
            forms = ["to %s is to %s" % (word, definition), "%s means to %s" % (word, definition)]
        else:
            forms = ["%s means %s" % (word, definition), definition]
        glosses.append(sentence(r.choice(forms)))
    return examples, glosses


def word_lists(folder, count, r):
    """Short lists of random dictionary words, so that every common word's sounds are met."""
    words = set()
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(os.path.join(folder, "index." + part), encoding="latin-1"):
            word = line.split(" ", 1)[0]
            if re.fullmatch(r"[a-z]{2,12}", word) and not BARRED.search(word):
                words.add(word)
    words = sorted(words)
    lists, deck = [], []
    for _ in range(count):
        size = r.randint(2, 7)
        if len(deck) < size:
            deck = r.sample(words, len(words))
        joint = r.choice([" ", ", "])
        lists.append(sentence(joint.join(deck.pop() for _ in range(size))))
    return lists


def variant(text, r):
    """Now and then another spelling of the same words: lower case, no stop, an exclamation."""
    draw = r.random()
    if draw < 0.04:
        return text.lower()
    if draw < 0.08 and text.endswith("."):
        return text[:-1]
    if draw < 0.10 and text.endswith("."):
        return text[:-1] + "!"
    return text


def paragraphs(pool, count, r):
    """Items of two to four sentences, at most 190 characters."""
    items = []
    while len(items) < count:
        parts = [r.choice(pool) for _ in range(r.randint(2, 4))]
        parts = [part for part in parts if part[-1] in ".?!"]
        if len(parts) > 1 and sum(map(len, parts)) <= 190:
            items.append(" | ".join(parts))
    return items


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wordnet", default="/usr/share/wordnet")
    parser.add_argument("--held", nargs="+", default=[os.path.join(HERE, name) for name in ("held.txt", "dev.txt")])
    parser.add_argument("--out", required=True)
    parser.add_argument("--everyday", type=int, default=20000)
    parser.add_argument("--numeric", type=int, default=18000)
    parser.add_argument("--figures", type=int, default=12000)
    parser.add_argument("--lists", type=int, default=12000)
    parser.add_argument("--paragraphs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    r = random.Random(options.seed)
    examples, glosses = wordnet(options.wordnet, r)
    daily = [everyday.plain(r) for _ in range(options.everyday)]
    figures = [everyday.numeric(r) for _ in range(options.numeric)] + [everyday.figures(r) for _ in range(options.figures)]
    singles = examples + glosses + daily + figures + word_lists(options.wordnet, options.lists, r)
    held = {re.sub(r"\W+", " ", line).lower().strip() for path in options.held for line in open(path)}
    seen, items = set(held), []
    for text in singles:
        key = re.sub(r"\W+", " ", text).lower().strip()
        if key not in seen and usable(text):
            seen.add(key)
            items.append(variant(text, r))
    short = [text for text in examples + daily + figures if usable(text) and len(text) < 90
             and re.sub(r"\W+", " ", text).lower().strip() not in held]
    items += paragraphs(short, options.paragraphs, r)
    items += [text for text in everyday.FIXED for _ in range(4)]
    r.shuffle(items)
    with open(options.out, "w", encoding="ascii") as file:
        file.write("\n".join(items) + "\n")
    print("text: %d items, %.1f characters each, %.2f M in all" % (len(items), sum(map(len, items)) / len(items), sum(map(len, items)) / 1e6))


if __name__ == "__main__":
    main()
