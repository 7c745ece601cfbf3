"""BERT's uncased tokenizer: clean, lower-case and split a text, then cut each word into the longest pieces of the vocabulary.

Tokenizer(vocab_path).encode(sentences, length) -> the model's three inputs as i64[batch, longest sentence].
"""
import unicodedata

import numpy as np

MAX_WORD_CHARS = 100


def is_punctuation(char):
    return 33 <= ord(char) <= 47 or 58 <= ord(char) <= 64 or 91 <= ord(char) <= 96 or 123 <= ord(char) <= 126 \
        or unicodedata.category(char).startswith("P")


def is_ideograph(char):
    return any(lo <= ord(char) <= hi for lo, hi in (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
        (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


def clean(text):
    """Control characters go, every blank becomes a space."""
    out = []
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r" or category == "Zs":
            out.append(" ")
        elif char not in "\0\ufffd" and not category.startswith("C"):
            out.append(char)
    return "".join(out)


def words(text):
    """Lower-case words without accents; punctuation and ideographs are words of their own."""
    text = unicodedata.normalize("NFD", clean(text).lower())
    spaced = []
    for char in text:
        if unicodedata.category(char) != "Mn":
            spaced.append(f" {char} " if is_punctuation(char) or is_ideograph(char) else char)
    return "".join(spaced).split()


class Tokenizer:
    def __init__(self, vocab_path):
        with open(vocab_path, encoding="utf-8") as lines:
            self.ids = {line.rstrip("\n"): i for i, line in enumerate(lines)}

    def pieces(self, word):
        """The longest piece that fits, again and again; later ones carry '##'. One unknown piece spoils the word."""
        result, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = self.ids.get(("##" if begin else "") + word[begin:end])
                if piece is not None:
                    break
            else:
                return [self.ids["[UNK]"]]
            result.append(piece)
            begin = end
        return result

    def ids_of(self, text, length):
        ids = []
        for word in words(text):
            ids += self.pieces(word) if len(word) <= MAX_WORD_CHARS else [self.ids["[UNK]"]]
        return [self.ids["[CLS]"], *ids[:length - 2], self.ids["[SEP]"]]

    def encode(self, sentences, length=256):
        rows = [self.ids_of(text, length) for text in sentences]
        width = max(map(len, rows))
        ids = np.full((len(rows), width), self.ids["[PAD]"], np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        for i, row in enumerate(rows):
            ids[i, :len(row)], mask[i, :len(row)] = row, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
