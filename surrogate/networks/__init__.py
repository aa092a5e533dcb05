"""Networks: functions of a noisy sample and its noise level, of the sample's shape."""

from surrogate.networks.residual_mlp import ResidualMLP as ResidualMLP
from surrogate.networks.temporal_mlp import TemporalMLP as TemporalMLP
from surrogate.networks.unet import UNet as UNet
