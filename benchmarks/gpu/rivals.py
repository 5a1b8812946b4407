"""Hugging Face and CTranslate2 on the same device, weights, sentences and lengths.

Owns how each is asked; each is measured at several batch sizes, the same as ours.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from benchmarks.peers.work import TARGET_LENGTH, Work, equal_work
from model.checkpoint.description.config_file import read_manifest
from model.system.gpu import use_unplanned_attention

Found = dict[str, object]
_CUBLAS = ("libcublasLt.so", "libcublas.so")


def huggingface(
    models: Path,
    device: torch.device,
    *,
    batches: Sequence[int],
    beam_sizes: Sequence[int],
    num_rounds: int,
) -> Iterator[Found]:
    """`MarianMTModel.generate` in bfloat16, without attention that is planned for every shape."""
    from transformers import GenerationConfig, MarianMTModel  # noqa: PLC0415  # only where asked

    use_unplanned_attention()
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    network = MarianMTModel.from_pretrained(models / "huggingface", dtype=dtype).eval()
    network = network.to(device)
    network.generation_config = GenerationConfig()
    manifest = read_manifest(models / "checkpoint", verify=False)
    tokens = manifest.tokens

    def measure(work: Work) -> Callable[[], None]:
        sources = torch.tensor(work.sources, device=device)
        beams = {"early_stopping": True, "length_penalty": 1.0} if work.beam_size > 1 else {}
        search = GenerationConfig(
            num_beams=work.beam_size,
            do_sample=False,
            max_new_tokens=TARGET_LENGTH - 1,
            suppress_tokens=list(tokens.suppressed_ids),
            pad_token_id=tokens.pad_id,
            eos_token_id=tokens.eos_id,
            decoder_start_token_id=tokens.start_id,
            **beams,
        )

        def run() -> None:
            with torch.inference_mode():
                output = network.generate(
                    sources, attention_mask=torch.ones_like(sources), generation_config=search
                )
            output.cpu()

        return run

    return _best(
        measure,
        batches,
        beam_sizes,
        vocab_size=manifest.network.output_size,
        num_rounds=num_rounds,
    )


def ctranslate2(
    models: Path,
    device: torch.device,
    *,
    batches: Sequence[int],
    beam_sizes: Sequence[int],
    num_rounds: int,
) -> Iterator[Found]:
    """`ctranslate2.Translator` in float16, all sentences of a batch in one call."""
    import ctranslate2 as library  # noqa: PLC0415  # only where asked

    directory = models / "ctranslate2-float32"
    translator = library.Translator(
        str(directory),
        device=device.type,
        compute_type="float16" if device.type == "cuda" else "float32",
    )
    pieces = json.loads((directory / "shared_vocabulary.json").read_text(encoding="utf-8"))
    manifest = read_manifest(models / "checkpoint", verify=False)
    suppressed = [[pieces[index]] for index in manifest.tokens.suppressed_ids]

    def measure(work: Work) -> Callable[[], None]:
        sources = [[pieces[index] for index in source[:-1]] for source in work.sources]

        def run() -> None:
            translator.translate_batch(
                sources,
                max_batch_size=0,
                beam_size=work.beam_size,
                length_penalty=1.0,
                max_decoding_length=TARGET_LENGTH - 1,
                min_decoding_length=TARGET_LENGTH - 1,
                suppress_sequences=suppressed,
            )

        return run

    return _best(
        measure,
        batches,
        beam_sizes,
        vocab_size=manifest.network.output_size,
        num_rounds=num_rounds,
    )


def _best(
    measure: Callable[[Work], Callable[[], None]],
    batches: Sequence[int],
    beam_sizes: Sequence[int],
    *,
    vocab_size: int,
    num_rounds: int,
) -> Iterator[Found]:
    """Tokens per second of every batch size; one that does not fit says so."""
    for beam_size in beam_sizes:
        for batch in batches:
            row: Found = {"sentences": batch, "beam_size": beam_size}
            run = measure(equal_work(batch, vocab_size=vocab_size, beam_size=beam_size))
            try:
                run()
                seconds = []
                for _ in range(num_rounds):
                    started = time.perf_counter()
                    run()
                    seconds.append(time.perf_counter() - started)
            except (RuntimeError, MemoryError) as error:
                row["error"] = str(error)[:200]
            else:
                row["seconds"] = [round(value, 5) for value in seconds]
                row["tokens_per_second"] = batch * TARGET_LENGTH / statistics.median(seconds)
            print(row, flush=True)
            yield row


def library_path(folder: Path) -> str:
    """Where CTranslate2 finds a cuBLAS, for a process that has not started yet.

    CTranslate2 opens `libcublas.so.12`; the libraries of CUDA 13, which PyTorch brings, answer the
    same calls, so they are put into `folder` under the older name.
    """
    folders = sorted(Path(torch.__file__).parents[1].glob("nvidia/*/lib"))
    for name in _CUBLAS:
        found = [path for place in folders for path in sorted(place.glob(f"{name}.1?"))]
        alias = folder / f"{name}.12"
        if found and not alias.exists():
            alias.symlink_to(found[-1])
    before = os.environ.get("LD_LIBRARY_PATH")
    return ":".join([*([before] if before else []), str(folder), *map(str, folders)])
