from pathlib import Path

import pytest
import torch

from model.errors import ConfigError
from model.train.objective import batch_loss, check_compiler, compiled_stacks
from support.training import cut, gradients, network, reversal_pairs


def test_compiling_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ConfigError, match=r"run\.compile is true, but there is no C\+\+ compiler"):
        check_compiler(torch.device("cpu"))


@pytest.mark.gpu  # on a CPU the compiler takes minutes
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # torch's own
def test_compiled_stacks_have_the_same_loss_and_gradients_for_any_shape() -> None:
    pairs = reversal_pairs(32)
    plain, compiled = network().cuda(), network().cuda()
    stacks = compiled_stacks(compiled)
    for shape in (cut(pairs, 16)[0], cut(pairs, 8)[1]):
        batch = shape.to(torch.device("cuda"))
        expected = batch_loss(plain, batch, smoothing=0.1)
        found = batch_loss(compiled, batch, smoothing=0.1, stacks=stacks)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
        for loss in (expected, found):
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    expected_gradients = gradients(plain)
    for name, gradient in gradients(compiled).items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-4, atol=1e-5)
