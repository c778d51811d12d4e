"""The agent's memory, which embeds transitions, encodes them in order, and aggregates part of the encoding."""

from splagger.memory.decoder import Decoder as Decoder
from splagger.memory.embedding import EmbeddingSizes as EmbeddingSizes
from splagger.memory.embedding import Transition as Transition
from splagger.memory.embedding import TransitionEmbedding as TransitionEmbedding
from splagger.memory.encoders import ENCODERS as ENCODERS
from splagger.memory.encoders import Constant as Constant
from splagger.memory.encoders import Pointwise as Pointwise
from splagger.memory.encoders import Projected as Projected
from splagger.memory.model import Memory as Memory
from splagger.memory.model import SequenceModel as SequenceModel
from splagger.memory.split import SplitAggregation as SplitAggregation
