"""The memory f(τ): embedding, encoders, split aggregation."""

from splagger.sequence.decoder import Decoder as Decoder
from splagger.sequence.embedding import EmbeddingSizes as EmbeddingSizes
from splagger.sequence.embedding import Transition as Transition
from splagger.sequence.embedding import TransitionEmbedding as TransitionEmbedding
from splagger.sequence.encoders import ENCODERS as ENCODERS
from splagger.sequence.encoders import Pointwise as Pointwise
from splagger.sequence.encoders import Projected as Projected
from splagger.sequence.model import Memory as Memory
from splagger.sequence.model import SequenceModel as SequenceModel
from splagger.sequence.model import SplitAggregation as SplitAggregation
