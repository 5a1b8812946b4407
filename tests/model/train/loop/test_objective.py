from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.errors import ConfigError
from model.nn.transformer import Transformer
from model.train.loop import objective
from model.train.loop.loss import label_smoothed_loss
from model.train.loop.objective import (
    INDUCTOR,
    batch_loss,
    check_compiler,
    compiled_stacks,
    plain_stacks,
)
from support.training import cut, gradients, network, reversal_pairs


@pytest.mark.parametrize(
    ("device", "variable", "message"),
    [
        (
            "cpu",
            "CXX",
            r"there is no C\+\+ compiler: none of \$CXX, g\+\+, clang\+\+, c\+\+",
        ),
        ("cuda", "CC", r"there is no C compiler: none of \$CC, cc, gcc, clang can be run"),
    ],
)
def test_compiling_needs_a_compiler(
    device: str, variable: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objective.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=rf"run\.compile is true, but {message}"):
        check_compiler(torch.device(device))
    own = tmp_path / "compiler"
    own.touch(mode=0o755)
    monkeypatch.setenv(variable, str(own))
    check_compiler(torch.device(device))


def test_compiling_on_a_gpu_needs_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objective.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="the package triton is not installed"):
        check_compiler(torch.device("cuda"))


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_what_is_trained_is_what_is_decoded_where_the_output_is_scaled(alpha: float) -> None:
    (batch,) = cut(reversal_pairs(32), 32)
    transformer = Transformer(replace(network().config, scale_output=True))
    found = batch_loss(transformer, batch, smoothing=0.1, rdrop_alpha=alpha)
    logits = transformer(batch.source_ids, batch.target_ids)
    expected = label_smoothed_loss(logits, batch.labels, smoothing=0.1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # torch's own
def test_traced_stacks_have_the_same_loss_and_gradients_for_any_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objective, "check_compiler", pytest.fail)  # none is needed
    compare(torch.device("cpu"), backend="eager")


@pytest.mark.gpu  # on a CPU the compiler takes minutes
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # torch's own
def test_compiled_stacks_have_the_same_loss_and_gradients_for_any_shape() -> None:
    compare(torch.device("cuda"), backend=INDUCTOR)


def compare(device: torch.device, *, backend: str) -> None:
    """Two batches of different shapes through a network as it is, and through a compiled one."""
    pairs = reversal_pairs(32)
    plain, compiled = network().to(device), network().to(device)
    stacks = compiled_stacks(plain_stacks(compiled), device, backend=backend)
    for shape in (cut(pairs, 16)[0], cut(pairs, 8)[1]):
        batch = shape.to(device)
        expected = batch_loss(plain, batch, smoothing=0.1)
        found = batch_loss(compiled, batch, smoothing=0.1, stacks=stacks)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
        for loss in (expected, found):
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    expected_gradients = gradients(plain)
    for name, gradient in gradients(compiled).items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-4, atol=1e-5)
