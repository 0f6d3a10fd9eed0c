"""PyTorch modules as the network of a model: found, tried once, and run over a plan's memory. Needs the extra torch."""

from streamtrain.compute.torch.module_source import TorchModule, in_process_of_its_own
from streamtrain.compute.torch.module_trial import described

__all__ = ["TorchModule", "described", "in_process_of_its_own"]
