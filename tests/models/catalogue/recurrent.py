"""Recurrent layers and cells."""

import torch
from torch import nn

from .rows import Chain, First, f, i, row


class Unrolled(nn.Module):
    """A cell over time."""

    def __init__(self, cell, width, pair=False):
        super().__init__()
        self.cell, self.width, self.pair = cell, width, pair

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.width)
        c, outputs = h, []
        for t in range(x.shape[1]):
            if self.pair:
                h, c = self.cell(x[:, t], (h, c))
            else:
                h = self.cell(x[:, t], h)
            outputs.append(h)
        return torch.stack(outputs, 1)


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 6), kind(6, 5, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 7)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


class WithState(nn.Module):
    """A GRU whose first state is trained, and of which the last state is used."""

    def __init__(self):
        super().__init__()
        self.rnn, self.start = nn.GRU(4, 5, batch_first=True), nn.Parameter(torch.randn(1, 1, 5))

    def forward(self, x):
        return self.rnn(x, self.start.expand(-1, x.shape[0], -1).contiguous())[1][0]


class TimeFirst(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(4, 5)

    def forward(self, x):
        return self.rnn(x.transpose(0, 1))[0].transpose(0, 1)


ROWS = [
    row("rnn", "nn.RNN nn.RNNBase", lambda: First(nn.RNN(4, 5, batch_first=True)), f(3, 4), recorded=True),
    row("rnn-relu", "nn.RNN", lambda: First(nn.RNN(4, 5, nonlinearity="relu", batch_first=True)), f(3, 4)),
    row("lstm", "nn.LSTM", lambda: First(nn.LSTM(4, 5, batch_first=True)), f(3, 4), recorded=True),
    row("lstm-two-layers", "nn.LSTM", lambda: First(nn.LSTM(4, 5, 2, batch_first=True)), f(3, 4)),
    row("lstm-both-ways", "nn.LSTM", lambda: First(nn.LSTM(4, 5, batch_first=True, bidirectional=True)), f(3, 4)),
    row("lstm-no-bias", "nn.LSTM", lambda: First(nn.LSTM(4, 5, bias=False, batch_first=True)), f(3, 4)),
    row("lstm-projection", "nn.LSTM", lambda: First(nn.LSTM(4, 5, proj_size=3, batch_first=True)), f(3, 4)),
    row("lstm-time-first", "nn.LSTM", lambda: TimeFirst(nn.LSTM), f(3, 4)),
    row("lstm-last-cell", "nn.LSTM", lambda: Chain(nn.LSTM(4, 5, batch_first=True), lambda r: r[1][1][-1]), f(3, 4)),
    row("gru", "nn.GRU", lambda: First(nn.GRU(4, 5, batch_first=True)), f(3, 4), recorded=True),
    row("gru-two-layers-both-ways", "nn.GRU", lambda: First(nn.GRU(4, 5, 2, batch_first=True, bidirectional=True)), f(3, 4)),
    row("gru-state", "nn.GRU", lambda: WithState(), f(3, 4)),
    row("gru-time-first", "nn.GRU", lambda: TimeFirst(nn.GRU), f(3, 4)),
    row("rnn-cell", "nn.RNNCell nn.RNNCellBase", lambda: Unrolled(nn.RNNCell(4, 5), 5), f(3, 4)),
    row("lstm-cell", "nn.LSTMCell", lambda: Unrolled(nn.LSTMCell(4, 5), 5, True), f(3, 4)),
    row("gru-cell", "nn.GRUCell", lambda: Unrolled(nn.GRUCell(4, 5), 5), f(3, 4)),
    row("lstm-tagger", "nn.LSTM nn.Embedding", lambda: Tagger(nn.LSTM), i(5, high=11), loss="cross-entropy"),
    row("gru-tagger", "nn.GRU nn.Embedding", lambda: Tagger(nn.GRU), i(5, high=11), loss="cross-entropy"),
]
