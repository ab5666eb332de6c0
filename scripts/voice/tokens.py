"""The tokenizer and the prompt.

    python3 tokens.py --text train.txt --out tokenizer.json
"""
import argparse
import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TEXT_ENTRIES = 746
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|voice|>", "<|text|>", "<|interleave|>"] + ["<|speaker:%d|>" % i for i in range(16)]
SEMANTIC_START = TEXT_ENTRIES + len(SPECIALS)
EOS = TEXT_ENTRIES + SPECIALS.index("<|im_end|>")
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PROMPT = ("<|im_start|>system\nconvert the provided text to speech<|im_end|>\n<|im_start|>user\n<|speaker:0|>%s<|im_end|>\n"
          "<|im_start|>assistant\n<|voice|>")
PROMPT_WORDS = "system\nconvert the provided text to speech\nuser\nassistant\n"


def shown(item):
    """An item's text as a reader writes it."""
    return item.replace(" | ", " ")


def train(path, out):
    """Byte-level BPE over the training text, prompt words added often enough to be one token each."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=TEXT_ENTRIES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    lines = [shown(line) for line in open(path, encoding="ascii").read().splitlines()]
    tokenizer.train_from_iterator(lines + [PROMPT_WORDS] * 6000, trainer)
    assert tokenizer.get_vocab_size() == TEXT_ENTRIES
    tokenizer.add_special_tokens(SPECIALS)
    assert tokenizer.token_to_id("<|im_end|>") == EOS
    tokenizer.save(out, pretty=False)


def prompt_ids(tokenizer, text):
    return tokenizer.encode(PROMPT % text.strip(), add_special_tokens=False).ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True)
    parser.add_argument("--out", required=True)
    o = parser.parse_args()
    train(o.text, o.out)
    tokenizer = Tokenizer.from_file(o.out)
    for text in ("Could you tell me where the nearest hospital is?", "It was 1984 at 3:45 pm and it cost $12.50."):
        print(len(prompt_ids(tokenizer, text)), tokenizer.encode(PROMPT % text).tokens)
    json.load(open(o.out))


if __name__ == "__main__":
    main()
