"""A stand-in for CUDA graphs on any device: a step's operations, recorded once and replayed.

As in a captured graph, whatever the step took from Python while it was recorded is baked in, and
whatever it reads is read again at each replay. A step that asks for the value of a tensor on the
host cannot be recorded.
"""

from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from model.decode.backends.cuda.recording import Step


class TracedSteps:
    """Records by tracing; counts what it recorded and replayed."""

    def __init__(self) -> None:
        self.num_recorded = 0
        self.num_replayed = 0

    def record(self, step: Step) -> Step:
        """Trace `step`; tracing runs it once, which counts as the first replay."""
        outputs: list[Tensor] = []

        def noted() -> Tensor:
            outputs.append(step())
            return outputs[0]

        traced = make_fx(noted)()
        self.num_recorded += 1

        def replay() -> Tensor:
            self.num_replayed += 1
            output: Tensor = outputs.pop() if outputs else traced()
            return output

        return replay
