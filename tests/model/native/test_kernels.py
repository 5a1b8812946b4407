"""Where the kernels are refused, and in which words."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from model.errors import UnsupportedVariantError
from model.loading import load_for_decoding
from model.native import kernels
from model.native.in_memory import pack_transformer
from support.search_cases import small_transformer
from support.tiny_checkpoint import write_tiny_checkpoint


def test_an_old_processor_is_named_by_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {"avx512": ["avx2", "fma", "avx512f"], "avx2": ["avx2", "fma"]}
    monkeypatch.setattr(kernels, "missing_features", lambda: lacking)
    assert kernels.find_problem() == "the processor has no avx2, fma"
    monkeypatch.setattr(kernels, "missing_features", lambda: {"avx2": []})
    monkeypatch.setattr(kernels, "_is_built", lambda _: False)
    assert kernels.find_problem() == "no kernels were built for what the processor has"


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not kernels.missing_features(),
    reason="nothing is built that asks an x86-64 processor",
)
def test_what_the_processor_lacks_is_what_the_system_does_not_list_of_it() -> None:
    flags = set(Path("/proc/cpuinfo").read_text(encoding="ascii").split())
    needed = {"avx2", "fma", "f16c"}
    wider = needed | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
    sets = {
        "avx512-amx": wider | {"avx512_vnni", "amx_int8"},
        "avx512-vnni": wider | {"avx512_vnni"},
        "avx2-vnni": needed | {"avx_vnni"},
        "avx512": wider,
        "avx2": needed,
    }
    # Whether tiles may be used has no flag.
    found = {
        name: {*missing} - {"amx_permission"}
        for name, missing in kernels.missing_features().items()
    }
    assert found == {name: features - flags for name, features in sets.items()}


def test_an_extension_that_was_not_built_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "EXTENSION", "model.native._absent")
    problem = kernels.find_problem()
    assert problem == "model.native._absent was not built when the package was installed"
    assert kernels.missing_flags() == []


def test_without_kernels_auto_is_float_and_int8_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    monkeypatch.setattr(kernels, "find_problem", lambda: "the processor is too old")
    assert load_for_decoding(directory).compute_type == "float32"
    with pytest.raises(UnsupportedVariantError, match="but the processor is too old"):
        load_for_decoding(directory, compute_type="int8")
    with pytest.raises(UnsupportedVariantError, match="int8 is not available: the processor"):
        kernels.load()


def test_positions_inside_attention_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedVariantError, match="position is 'rope'"):
        pack_transformer(small_transformer(position="rope"), max_positions=8)


def test_a_decoder_layer_of_an_unknown_kind_is_refused_by_name() -> None:
    transformer = small_transformer()
    transformer.decoder.layers[1] = transformer.encoder.layers[1]
    with pytest.raises(UnsupportedVariantError, match="decoder layer 1 is a EncoderLayer; int8"):
        pack_transformer(transformer, max_positions=8)


@pytest.mark.skipif(kernels.find_problem() is not None, reason="no kernels here")
def test_stored_rows_are_packed_as_they_are(tmp_path: Path) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    assert load_for_decoding(directory).compute_type == "int8"
    assert load_for_decoding(directory, compute_type="float32").compute_type == "float32"


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer takes terabytes of it"
)
@pytest.mark.skipif(kernels.find_problem() is not None, reason="no kernels here")
def test_threads_that_cannot_be_started_are_one_error(tmp_path: Path) -> None:
    """In a process of its own, which has room for the stacks of a few threads more."""
    write_tiny_checkpoint(tmp_path / "tiny")
    code = f"""
import resource
import re
import subprocess
import sys
from pathlib import Path
from model.errors import ConfigError
from model.loading import load_for_decoding

load = lambda num_threads: load_for_decoding(
    Path({str(tmp_path / "tiny")!r}), compute_type="int8", num_threads=num_threads
)
load(2)
num_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (num_bytes + 2**29,) * 2)
try:
    load(1000)
except ConfigError as error:
    print(error)
load(2)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert re.fullmatch(r"only \d+ of 1000 threads can be started: .+\n", ended.stdout)
