"""Sentences and sessions of the measurements on a GPU.

Owns requests of forced length, and sessions that are just large enough for them.
"""

from functools import partial

import torch

from benchmarks.peers.work import SOURCE_LENGTH, TARGET_LENGTH, equal_work
from model.config import SearchConfig, SpecialTokens
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.kernels.opening import device_launcher
from model.decode.backends.cuda.recording import CudaGraphs, Recorder, Rerun
from model.decode.session import DecodingSession
from model.nn.transformer import Transformer
from model.request import DecodeRequest, Hypothesis, SessionLimits


def recorder_for(device: torch.device) -> Recorder:
    """Graphs where there are any."""
    return CudaGraphs() if device.type == "cuda" else Rerun()


def forced_requests(
    num_sentences: int, *, beam_size: int, vocab_size: int, start_id: int, seed: int = 1
) -> list[DecodeRequest]:
    """Random sentences of 25 tokens whose answers have 32, EOS counted on both sides."""
    work = equal_work(num_sentences, vocab_size=vocab_size, beam_size=beam_size, seed=seed)
    search = SearchConfig(beam_size=beam_size, stopping="first", max_length=TARGET_LENGTH)
    return [
        DecodeRequest(source_ids=source, prefix_ids=(start_id,), search=search)
        for source in work.sources
    ]


def open_session(
    transformer: Transformer,
    tokens: SpecialTokens,
    *,
    num_sentences: int,
    beam_size: int,
    recorder: Recorder | None = None,
    with_kernels: bool = True,
) -> DecodingSession:
    """A session for so many sentences at once, as a device serves them.

    Args:
        transformer: On the device.
        tokens: The vocabulary's.
        num_sentences: Slots.
        beam_size: Rows of each.
        recorder: The device's unless one is given.
        with_kernels: Whether Triton's programs run where they can.
    """
    weight = transformer.target_embedding.weight
    launcher = None
    if with_kernels and weight.device.type == "cuda":
        launcher = device_launcher(weight.device, weight.dtype)
    return DecodingSession(
        transformer,
        tokens=tokens,
        limits=SessionLimits(
            max_rows=num_sentences * beam_size,
            max_slots=num_sentences,
            max_source_length=SOURCE_LENGTH,
            max_target_length=TARGET_LENGTH + 1,
        ),
        opener=partial(
            GridBackend, recorder=recorder or recorder_for(weight.device), launcher=launcher
        ),
    )


@torch.inference_mode()
def run_all(
    session: DecodingSession, requests: list[DecodeRequest]
) -> list[tuple[Hypothesis, ...]]:
    """Decode, refilling the session as sentences leave it; results in the order of requests."""
    waiting = list(enumerate(requests))[::-1]
    running: dict[int, int] = {}
    results: list[tuple[Hypothesis, ...]] = [()] * len(requests)
    while waiting or running:
        chosen = [waiting.pop() for _ in range(min(session.free_slots, len(waiting)))]
        if chosen:
            names = session.admit([request for _, request in chosen])
            running.update(zip(names, (index for index, _ in chosen), strict=True))
        for sentence in session.step():
            results[running.pop(sentence.slot_id)] = sentence.hypotheses
    return results


def num_tokens(results: list[tuple[Hypothesis, ...]]) -> int:
    """Target tokens of the best hypotheses, EOS counted."""
    return sum(len(hypotheses[0].token_ids) + 1 for hypotheses in results)
