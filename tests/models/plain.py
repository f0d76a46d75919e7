"""Plain modules with what exporters tend to lose: batch norms, padding, tied weights, numbers as parameters,
buffers; modules of torch.nn that become many ops: recurrent layers, images, volumes; and complex numbers."""

import torch
import torch.nn.functional as F
from torch import nn


class Cnn(nn.Module):
    """Convolutions with batch normalization in training form; equal norms, a frozen layer, dropout."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(4), nn.BatchNorm2d(6)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(6, 5)
        self.first.bias.requires_grad_(False)

    def forward(self, x):
        h = F.relu(self.bn1(self.first(x)))
        h = F.relu(self.bn2(self.second(h)))
        return self.head(self.drop(h.mean((2, 3))))


class PaddedTied(nn.Module):
    """An embedding whose padding row takes no gradient from the lookup, but one from the head that is tied to it."""

    def __init__(self, vocabulary=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=3)
        self.positions = nn.Embedding(8, width)
        self.norm, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        h = self.embed(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.second(h + F.gelu(self.mix(self.norm(h)))))


class Scalars(nn.Module):
    """Parameters of rank 0, buffers that are and are not saved and look like weights, frozen and unused parameters."""

    def __init__(self, width=8):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(0.0))
        self.first, self.second, self.frozen = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.frozen.requires_grad_(False)
        self.unused = nn.Linear(width, width)
        self.register_buffer("mean", torch.linspace(-1, 1, width))
        self.register_buffer("mask", torch.tril(torch.ones(width, width)), persistent=False)
        self.mixing = nn.Parameter(torch.tril(torch.ones(width, width)))  # looks like a mask and is a weight
        # looks like rotary frequencies and is a weight
        self.decay = nn.Parameter(0.5 ** torch.arange(width).float())

    def forward(self, x):
        h = (x - self.mean) * self.scale + self.shift
        h = torch.tanh(self.first(h)) @ (self.mixing * self.mask) * self.decay
        return self.second(h + self.frozen(x))


class Images(nn.Module):
    """What images go through: transposed convolutions, padding by what is there, interpolation, pooling, pixels that
    become channels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect")
        self.pool, self.second = nn.MaxPool2d(3, stride=2, padding=1), nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular")
        self.shuffle, self.edge = nn.PixelShuffle(2), nn.ReplicationPad2d((1, 0, 2, 1))
        self.up = nn.ConvTranspose2d(2, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.average = nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
        self.head = nn.ConvTranspose2d(6, 2, 3, dilation=2, bias=False)

    def forward(self, x):
        h = torch.tanh(self.second(self.pool(self.first(x))))
        h = self.average(self.up(self.edge(self.shuffle(h))))
        h = F.interpolate(h, scale_factor=2.0, mode="bilinear")
        return self.head(F.interpolate(h, size=(5, 4), mode="bicubic", align_corners=True))


class Volumes(nn.Module):
    """Convolutions and pooling of three dimensions."""

    def __init__(self):
        super().__init__()
        self.first, self.pool = nn.Conv3d(2, 4, (3, 2, 3), padding=(1, 0, 1), groups=2), nn.MaxPool3d(3, stride=2, padding=1)
        self.second, self.average = nn.Conv3d(4, 6, 2, dilation=(1, 2, 1)), nn.AvgPool3d(2, stride=1, padding=1)
        self.up = nn.ConvTranspose3d(6, 2, (2, 3, 2), stride=(2, 1, 2), output_padding=(1, 0, 0))

    def forward(self, x):
        h = self.pool(F.gelu(self.first(x)))
        h = F.interpolate(torch.tanh(self.second(h)), scale_factor=2.0)
        return self.up(self.average(h))


class Recurrent(nn.Module):
    """The recurrent layers, of two directions and layers, with initial states and without biases."""

    def __init__(self, width=6):
        super().__init__()
        self.lstm = nn.LSTM(width, 5, batch_first=True, bidirectional=True)
        self.gru, self.rnn = nn.GRU(10, 6, num_layers=2, batch_first=True), nn.RNN(6, 4, nonlinearity="relu", bias=False)
        self.state, self.head = nn.Linear(width, 6), nn.Linear(4, 3)

    def forward(self, x):
        h, (last, cell) = self.lstm(x)
        first = torch.tanh(self.state(x.mean(1)))
        h, state = self.gru(h, torch.stack((first, first * 0.5)))
        h, _ = self.rnn(h.transpose(0, 1))
        return self.head(h.transpose(0, 1)) + (last.sum((0, 2)) + cell.sum((0, 2)) + state.sum((0, 2))).reshape(-1, 1, 1)


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: low frequencies of both signs have weights, which are complex numbers."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weights1, self.weights2 = (nn.Parameter(torch.rand(width, width, modes, modes, dtype=torch.cfloat) / width**2)
                                        for _ in range(2))

    def forward(self, x):
        m, z = self.modes, torch.fft.rfft2(x)
        made = torch.zeros(z.shape, dtype=torch.cfloat, device=x.device)
        made[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", z[:, :, :m, :m], self.weights1)
        made[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", z[:, :, -m:, :m], self.weights2)
        return torch.fft.irfft2(made, s=x.shape[-2:])


class Fno(nn.Module):
    """A Fourier neural operator (Li et al., arXiv:2010.08895), its phases turned by a vector of complex numbers."""

    def __init__(self):
        super().__init__()
        self.lift, self.skip, self.out = nn.Conv2d(1, 4, 1), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 1, 1)
        self.spectral = Spectral(4, 3)
        self.phase = nn.Parameter(torch.polar(torch.ones(9), torch.arange(9.0)))

    def forward(self, x):
        h = self.lift(x)
        h = F.gelu(self.spectral(h) + self.skip(h))
        return self.out(torch.fft.ifft(torch.fft.fft(h, norm="ortho") * self.phase, norm="ortho").real)


MODELS = {  # name -> (module, example inputs, names, loss)
    "cnn": lambda: (Cnn(), (torch.randn(4, 1, 6, 6),), ["x"], "cross-entropy"),
    "fno": lambda: (Fno(), (torch.randn(4, 1, 8, 9),), ["x"], "mse"),
    "padded-tied": lambda: (PaddedTied(), (torch.randint(4, 32, (4, 8)),), ["tokens"], "cross-entropy"),
    "images": lambda: (Images(), (torch.randn(4, 2, 8, 9),), ["x"], "mse"),
    "recurrent": lambda: (Recurrent(), (torch.randn(4, 5, 6),), ["x"], "mse"),
    "scalars": lambda: (Scalars(), (torch.randn(4, 8),), ["x"], "mse"),
    "volumes": lambda: (Volumes(), (torch.randn(4, 2, 4, 5, 6),), ["x"], "mse"),
}
