"""Layer sizes of an agent, and whether a method fits into them."""

from dataclasses import dataclass

from splagger.errors import SettingError
from splagger.memory import EmbeddingSizes
from splagger.memory.split import SplitAggregation
from splagger.methods import Method
from splagger.policy import Deterministic
from splagger.ranges import Positive, Size, check, check_fields


@dataclass(frozen=True)
class Network:
    """Layer sizes of an agent; the defaults are the paper's."""

    embedding: EmbeddingSizes = EmbeddingSizes()  # of transitions
    output_size: Size = 24  # of the memory
    state_embedding: Size = 256  # of the policy's input
    latent_embedding: Size = 25  # the hypernetwork's input
    hidden: tuple[Size, ...] = (256, 128)  # of policy and critic
    width_factor: Positive = 1.0  # multiplies the width of the method's encoder
    decoder_hidden: tuple[Size, ...] = (32, 32)  # of the decoder, if there is one
    decoder_predicts_state: bool = False  # instead of rewards
    image_channels: tuple[Size, ...] = (16, 32)  # of the layers that embed images, if there are any

    def __post_init__(self):
        check_fields(self, "network.")

    def width(self, method: Method) -> int:
        """Returns the number of neurons of a method's encoder."""
        return int(method.width * self.width_factor)


def check_fit(method: Method, network: Network) -> None:
    """Refuses sizes that are valid on their own, but not together."""
    width, output = network.width(method), network.output_size
    check("method.width × network.width_factor", width, Size)
    method.latent.size(output)
    if method.bottleneck:
        output = _aggregation(method, output).output_size
        method.latent.size(output)
        if 0 < method.skip < 1 and not isinstance(method.latent, Deterministic):
            raise SettingError(
                f"method.skip must be 0 or 1 for {method.name!r}, got {method.skip:g}: its latent reads means and "
                "variances from the whole aggregate"
            )
    elif method.skip < 1:  # raises if the aggregator cannot read so many neurons
        _aggregation(method, width).output_size  # noqa: B018
    if method.reconstruct and output % 2:
        raise SettingError(
            f"network.output_size must be even for {method.name!r}, whose memory holds means and variances, got "
            f"{output} numbers"
        )


def _aggregation(method: Method, width: int) -> SplitAggregation:
    """The aggregation of so many neurons, as the memory will contain it."""
    return SplitAggregation(method.aggregator, width, int(width * method.skip))
