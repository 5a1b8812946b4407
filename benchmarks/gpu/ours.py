"""Dragoman on the device: is it right, how fast is it, and is the device busy.

Owns the measurements of our own engine; each returns what goes into the results file.
"""

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.work import forced_requests, num_tokens, open_session, recorder_for, run_all
from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig, SpecialTokens
from model.loading import Runnable
from model.nn.transformer import Transformer
from model.offline.evaluate import evaluate
from model.offline.translator import Translator
from model.request import Hypothesis
from model.train.data.parallel import read_parallel

_TIE = 1e-4
Found = dict[str, object]


def correctness(checkpoint: Path, sentences: Sequence[str], device: torch.device) -> Found:
    """The device's hypotheses against a CPU's in float32, plain and without graphs.

    Hypotheses may differ where two scores lie within 1e-4; in bfloat16 they may differ more.
    """
    oracle = _hypotheses(checkpoint, sentences, torch.device("cpu"), torch.float32)
    found: Found = {"num_segments": len(oracle)}
    types = (torch.float32, torch.bfloat16) if device.type == "cuda" else (torch.float32,)
    for dtype in types:
        hypotheses = _hypotheses(checkpoint, sentences, device, dtype)
        pairs = list(zip(hypotheses, oracle, strict=True))
        differing = [(ours, theirs) for ours, theirs in pairs if ours.token_ids != theirs.token_ids]
        gaps = [abs(ours.score - theirs.score) for ours, theirs in pairs]
        found[str(dtype).removeprefix("torch.")] = {
            "num_different": len(differing),
            "num_ties": sum(abs(a.score - b.score) < _TIE for a, b in differing),
            "largest_score_gap": max(gaps),
        }
    return found


def _hypotheses(
    checkpoint: Path, sentences: Sequence[str], device: torch.device, dtype: torch.dtype
) -> list[Hypothesis]:
    translator = Translator(_runnable(checkpoint, device, dtype))
    pair = translator.manifest.pairs[0]
    search = SearchConfig(beam_size=4)
    prepared = [translator.pipeline.prepare(text, pair) for text in sentences]
    requests = [item for text in prepared for item in translator.requests(text, pair, search)]
    return [hypotheses[0] for hypotheses in translator.search(requests)]


def _runnable(checkpoint: Path, device: torch.device, dtype: torch.dtype) -> Runnable:
    loaded = load_checkpoint(checkpoint, device=device)
    return Runnable(
        manifest=loaded.manifest,
        network=loaded.transformer.to(dtype),
        tokenizer=loaded.tokenizer,
        compute_type="bfloat16" if dtype == torch.bfloat16 else "float32",
    )


def bleu(checkpoint: Path, data: Path, device: torch.device) -> Found:
    """BLEU in float32 and bfloat16 on the image captions that choose the bundled weights."""
    text = read_parallel(
        data / "en-zh" / "dev", "3am-captions", source_language="en", target_language="zh"
    )
    found: Found = {"corpus": "dev/3am-captions"}
    for dtype in (torch.float32, torch.bfloat16):
        translator = Translator(_runnable(checkpoint, device, dtype), max_rows=1024)
        pair = translator.manifest.pairs[0]
        scores = evaluate(
            translator, pair, text.source, text.target, search=SearchConfig(beam_size=4)
        ).scores
        found[str(dtype).removeprefix("torch.")] = scores.bleu.value
    return found


def speed(
    checkpoint: Path,
    device: torch.device,
    *,
    counts: Sequence[int],
    beam_sizes: Sequence[int],
    num_rounds: int,
    dtype: torch.dtype,
) -> Iterator[Found]:
    """Tokens per second with so many sentences at once, from ids to ids, encoder included."""
    loaded = load_checkpoint(checkpoint, device=device)
    transformer = loaded.transformer.to(dtype)
    tokens = loaded.manifest.tokens
    for beam_size in beam_sizes:
        for count in counts:
            _forget_memory(device)
            session = open_session(transformer, tokens, num_sentences=count, beam_size=beam_size)
            requests = forced_requests(
                count,
                beam_size=beam_size,
                vocab_size=transformer.config.output_size,
                start_id=tokens.start_id,
            )
            seconds = []
            for _ in range(2 + num_rounds):  # two to warm up and to record
                with _timed(device) as elapsed:
                    results = run_all(session, requests)
                seconds.append(elapsed[0])
            with _timed(device) as elapsed:
                refilled = run_all(session, requests * 4)
            del session
            row: Found = {
                "sentences": count,
                "beam_size": beam_size,
                "seconds": [round(value, 5) for value in seconds[2:]],
                "tokens_per_second": num_tokens(results) / statistics.median(seconds[2:]),
                "refilled_tokens_per_second": num_tokens(refilled) / elapsed[0],
                "peak_memory_mib": _peak_memory_mib(device),
            }
            print(row, flush=True)
            yield row


def busy(checkpoint: Path, device: torch.device, *, count: int, dtype: torch.dtype) -> Found:
    """`busy_share` of a checkpoint."""
    loaded = load_checkpoint(checkpoint, device=device)
    transformer, tokens = loaded.transformer.to(dtype), loaded.manifest.tokens
    return busy_share(transformer, tokens, device, count=count)


@torch.inference_mode()
def busy_share(
    transformer: Transformer, tokens: SpecialTokens, device: torch.device, *, count: int
) -> Found:
    """The share of a round's time in which a kernel runs, and the kernels that take it.

    The profiler itself slows the host down, so the share is a lower bound.
    """
    session = open_session(transformer, tokens, num_sentences=count, beam_size=4)
    requests = forced_requests(
        count, beam_size=4, vocab_size=transformer.config.output_size, start_id=tokens.start_id
    )
    for _ in range(3):
        run_all(session, requests)
    kind = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    with profile(activities=[kind]) as profiler, _timed(device) as elapsed:
        run_all(session, requests)
    attribute = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    totals = sorted(
        ((event.key, getattr(event, attribute) / 1e6) for event in profiler.key_averages()),
        key=lambda entry: -entry[1],
    )
    return {
        "sentences": count,
        "seconds": elapsed[0],
        "busy_share": sum(seconds for _, seconds in totals) / elapsed[0],
        "top_kernels": [[name[:100], round(seconds, 6)] for name, seconds in totals[:20]],
        "recorder": type(recorder_for(device)).__name__,
    }


@contextmanager
def _timed(device: torch.device) -> Iterator[list[float]]:
    elapsed: list[float] = []
    _wait(device)
    started = time.perf_counter()
    yield elapsed
    _wait(device)
    elapsed.append(time.perf_counter() - started)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _forget_memory(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak_memory_mib(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else 0.0
