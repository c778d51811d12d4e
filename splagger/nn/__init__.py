"""Neural network building blocks, which depend on JAX and Equinox only. GPU code is in `splagger.nn.gpu`."""

from splagger.nn.attention import Transformer as Transformer
from splagger.nn.encoder import AbstractEncoder as AbstractEncoder
from splagger.nn.encoder import Preparable as Preparable
from splagger.nn.encoder import prepare as prepare
from splagger.nn.gru import GRU as GRU
from splagger.nn.layers import MLP as MLP
from splagger.nn.layers import Identity as Identity
from splagger.nn.layers import LayerNorm as LayerNorm
from splagger.nn.layers import Linear as Linear
from splagger.nn.lru import LRU as LRU
from splagger.nn.lstm import LSTM as LSTM
from splagger.nn.mingru import MinGRU as MinGRU
from splagger.nn.mlstm import MLSTM as MLSTM
from splagger.nn.moments import Moments as Moments
