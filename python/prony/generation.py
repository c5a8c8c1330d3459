"""Text generation with decoders."""

from __future__ import annotations

import operator
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from . import _prony

__all__ = ["Generator"]

Prompt = Union[Sequence[int], Sequence[Sequence[int]]]

_OPTIONS = {"batch", "max_length", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "stop_ids", "input_ids",
            "attention_mask", "position_ids", "logits", "inputs", "chunk", "kv_cache", "roles", "caches"}


def _sequences(prompt: Prompt) -> tuple[list[list[int]], bool]:
    """A list for each sequence, and whether there is one that was given alone."""
    if len(prompt) == 0 or not hasattr(prompt[0], "__len__"):
        return [[operator.index(i) for i in prompt]], True  # type: ignore[arg-type]
    return [[operator.index(i) for i in row] for row in prompt], False  # type: ignore[union-attr]


class Generator(_prony.Generator):
    """Generates token ids with a decoder: the loop around a session that feeds ids, positions, masks and the cache.

        generator = session.generator([1, 2, 3], new=20)
        ids = list(generator)

    prompt: ids of one sequence, or a list of several; then iteration gives a list of ids, one for each. new: how many ids to
    give; None: until all sequences ended with a stop id, or the context is full. max_length: tokens of a sequence; None: the
    model's positions, at most 2048. temperature, top_k, top_p, min_p, repetition_penalty, seed: how ids are drawn; temperature 0
    takes the most probable one. stop_ids: ids that end a sequence. input_ids, attention_mask, position_ids, logits: names, where
    the model has its own. roles: {role: input} of what is not found by names and the graph, such as {"past_length": "cur_len"};
    the roles are those of docs/guides/generate_text.md, and "logits" names an output. caches: {past: present}, the input and output
    of each cache; one "*" in both stands for any text. chunk: tokens of a prompt that one run computes at most; None: all.
    kv_cache: "fp16" or "int8" keeps keys and values in fewer bits; None: "fp32". inputs: {name: array} of what a generator does not
    feed, such as an encoder's states.

    The session belongs to the generator between its calls, and has to be made without max_dims."""

    def __new__(cls, session: _prony.Session, prompt: Optional[Prompt] = None, *, new: Optional[int] = None,
                **options: Any) -> "Generator":
        unknown = set(options) - _OPTIONS
        if unknown:
            raise TypeError(f"there is no option {', '.join(sorted(unknown))}; there are {', '.join(sorted(_OPTIONS))}")
        given: dict[str, Any] = dict(options)
        if prompt is not None and "batch" not in given:
            given["batch"] = len(_sequences(prompt)[0])
        for key in ("temperature", "top_p", "min_p", "repetition_penalty"):
            if given.get(key) is not None:
                given[key] = float(given[key])
        if given.get("stop_ids") is not None:
            given["stop_ids"] = list(given["stop_ids"])
        for key in ("roles", "caches"):
            if given.get(key) is not None:
                given[key] = dict(given[key])
        return super().__new__(cls, session, given)

    def __init__(self, session: _prony.Session, prompt: Optional[Prompt] = None, *, new: Optional[int] = None, **options: Any) -> None:
        self._alone = self.info["batch"] == 1
        self._left = new
        self._done = False
        if prompt is not None:
            self.prompt(prompt)

    @property
    def info(self) -> Mapping[str, Any]:
        """Figures as of the last call: cache, convention, length, max_length, vocabulary, cache_bytes, cache_copied_bytes, ..."""
        return self._info()

    def prompt(self, ids: Prompt) -> None:
        """Appends ids to the sequences and computes them. Prompts may follow generated ids."""
        sequences, alone = _sequences(ids)
        self._prompt(sequences)  # type: ignore[arg-type]
        self._alone, self._done = alone, False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        info = self._info()
        if self._done or self._left == 0 or info["length"] >= info["max_length"]:
            raise StopIteration
        ids, self._done = self._next()
        if self._left is not None:
            self._left -= 1
        return ids[0] if self._alone else ids
