"""Rows: Fourier transforms, of odd and even sizes, and of sizes that are split into factors."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten
WIDE = torch.float64
HANN, HAMMING = torch.hann_window(12), torch.hamming_window(9, periodic=False)


def real(z):
    """All of a complex tensor, as a real one."""
    return torch.view_as_real(z.resolve_conj()) if z.is_complex() else z


def of_pairs(name, function, *shape, dtype=torch.float32, overload="", refused=None):
    """A row of a transform of complex numbers."""
    return row(name, f"aten.fft_{overload or name.split('_')[0]}.default", lambda x, y: real(function(torch.complex(x, y))),
               f(*shape, dtype=dtype), f(*shape, dtype=dtype), refused=refused)


def of_real(name, function, *shape, dtype=torch.float32, overload="", refused=None):
    return row(name, f"aten.fft_{overload or name.split('_')[0]}.default", lambda x: real(function(x)), f(*shape, dtype=dtype),
               refused=refused)


def fnet(x):
    """As FNet mixes tokens: twice, and the real part."""
    return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real


def operator(x, w1, w2):
    """A layer of a Fourier neural operator: low frequencies of both signs have weights."""
    w1, w2 = torch.view_as_complex(w1), torch.view_as_complex(w2)
    z = torch.fft.rfft2(x)
    made = torch.zeros(x.shape[0], w1.shape[1], x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
    made[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", z[:, :, :3, :3], w1)
    made[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", z[:, :, -3:, :3], w2)
    return torch.fft.irfft2(made, s=x.shape[-2:])


def filtered(x, w):
    """As GFNet filters images."""
    return torch.fft.irfft2(torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(w), s=(6, 7), dim=(1, 2),
                            norm="ortho")


def correlation(q, k):
    """As Autoformer has it."""
    return torch.fft.irfft(torch.fft.rfft(q, dim=1) * torch.conj(torch.fft.rfft(k, dim=1)), n=q.shape[1], dim=1)


def spectrum(x, **options):
    return real(torch.stft(x, 12, return_complex=True, **options))


def there_and_back(x, **options):
    spectrum = torch.stft(x, 12, return_complex=True, **options) * 1.5
    return torch.istft(spectrum, 12, **options)


ROWS = [
    of_pairs("fft", torch.fft.fft, 3, 8),
    of_pairs("fft_odd", torch.fft.fft, 3, 7),
    of_pairs("fft_one", torch.fft.fft, 3, 1),
    of_pairs("fft_ortho", lambda z: torch.fft.fft(z, dim=0, norm="ortho"), 5, 3),
    of_pairs("fft_forward", lambda z: torch.fft.fft(z, dim=-2, norm="forward"), 2, 6, 3),
    of_pairs("fft_padded", lambda z: torch.fft.fft(z, n=11), 3, 8),
    of_pairs("fft_cut", lambda z: torch.fft.fft(z, n=5, norm="ortho"), 3, 8),
    of_pairs("fft_wide", torch.fft.fft, 3, 9, dtype=WIDE),
    of_pairs("fft_split", torch.fft.fft, 2, 300),
    of_pairs("fft_split_prime", lambda z: torch.fft.fft(z, dim=0, norm="ortho"), 2 * 257, 1),
    of_pairs("fft_split_wide", lambda z: torch.fft.fft(z, norm="ortho"), 2, 512, dtype=WIDE),
    of_real("fft_of_real", torch.fft.fft, 3, 7),
    of_real("fft_of_real_split", lambda x: torch.fft.fft(x, dim=0, norm="ortho"), 512, 2),
    row("fft_of_integers", "aten.fft_fft.default", lambda x, at: x * real(torch.fft.fft(at)), f(4, 5, 2), i(4, 5)),
    of_pairs("ifft", torch.fft.ifft, 3, 8),
    of_pairs("ifft_forward", lambda z: torch.fft.ifft(z, n=9, dim=0, norm="forward"), 7, 3),
    of_pairs("ifft_ortho_split", lambda z: torch.fft.ifft(z, norm="ortho"), 2, 270),
    of_real("ifft_of_real", torch.fft.ifft, 3, 5),
    of_real("rfft", torch.fft.rfft, 3, 8),
    of_real("rfft_odd", torch.fft.rfft, 3, 7),
    of_real("rfft_dim", lambda x: torch.fft.rfft(x, n=6, dim=-2, norm="ortho"), 2, 9, 3),
    of_real("rfft_wide", lambda x: torch.fft.rfft(x, norm="forward"), 3, 10, dtype=WIDE),
    of_real("rfft_split", torch.fft.rfft, 2, 400),
    of_real("rfft_split_odd", lambda x: torch.fft.rfft(x, dim=0), 375, 2),
    of_pairs("irfft", torch.fft.irfft, 3, 5),
    of_pairs("irfft_odd", lambda z: torch.fft.irfft(z, n=9), 3, 5),
    of_pairs("irfft_dim", lambda z: torch.fft.irfft(z, n=6, dim=1, norm="ortho"), 2, 7, 3),
    of_pairs("irfft_padded", lambda z: torch.fft.irfft(z, n=12, norm="forward"), 3, 5),
    of_pairs("irfft_wide", torch.fft.irfft, 3, 6, dtype=WIDE),
    of_pairs("irfft_split", lambda z: torch.fft.irfft(z, norm="ortho"), 2, 201),
    of_pairs("irfft_split_odd", lambda z: torch.fft.irfft(z, n=375, norm="ortho"), 2, 188),
    of_real("irfft_of_real", torch.fft.irfft, 3, 5),
    of_pairs("hfft", torch.fft.hfft, 3, 5),
    of_pairs("hfft_ortho", lambda z: torch.fft.hfft(z, n=7, dim=0, norm="ortho"), 5, 2),
    of_real("ihfft", torch.fft.ihfft, 3, 6),
    of_real("ihfft_forward", lambda x: torch.fft.ihfft(x, n=7, dim=0, norm="forward"), 5, 2),
    of_pairs("fft2", torch.fft.fft2, 2, 4, 5),
    of_pairs("fft2_sizes", lambda z: torch.fft.fft2(z, s=(3, -1), dim=(2, 0), norm="ortho"), 2, 4, 5),
    of_pairs("ifft2", torch.fft.ifft2, 2, 4, 5),
    of_real("rfft2", torch.fft.rfft2, 2, 4, 5),
    of_real("rfft2_dims", lambda x: torch.fft.rfft2(x, dim=(1, 0), norm="forward"), 4, 6, 2),
    of_pairs("irfft2", torch.fft.irfft2, 2, 4, 5),
    of_pairs("irfft2_sizes", lambda z: torch.fft.irfft2(z, s=(5, 7), dim=(1, 2), norm="ortho"), 2, 4, 5),
    of_pairs("hfft2", lambda z: torch.fft.hfft2(z, norm="ortho"), 2, 4, 5),
    of_real("ihfft2", torch.fft.ihfft2, 2, 4, 5),
    of_pairs("fftn", torch.fft.fftn, 2, 4, 3),
    of_pairs("fftn_sizes", lambda z: torch.fft.fftn(z, s=(3, 6)), 2, 4, 3),
    of_pairs("fftn_dims", lambda z: torch.fft.fftn(z, dim=(0, -1), norm="forward"), 2, 4, 3),
    of_real("fftn_of_real", lambda x: torch.fft.fftn(x, dim=(1, 0)), 2, 4, 3),
    of_pairs("ifftn", torch.fft.ifftn, 2, 4, 3),
    of_real("rfftn", torch.fft.rfftn, 2, 4, 3),
    of_pairs("irfftn", torch.fft.irfftn, 2, 4, 3),
    of_pairs("irfftn_sizes", lambda z: torch.fft.irfftn(z, s=(3, -1, 5), norm="ortho"), 2, 4, 3),
    of_pairs("hfftn", lambda z: torch.fft.hfftn(z, dim=(0, 2)), 2, 4, 3),
    of_real("ihfftn", lambda x: torch.fft.ihfftn(x, s=(4, 5)), 2, 4, 3),
    of_pairs("fftshift", torch.fft.fftshift, 3, 4),
    of_real("fftshift_dim", lambda x: torch.fft.fftshift(x, dim=-1), 2, 5),
    of_real("ifftshift", lambda x: torch.fft.ifftshift(x, dim=(0, 1)), 3, 4),
    of_pairs("ifftshift_pairs", lambda z: torch.fft.ifftshift(z, dim=1), 3, 5),
    of_real("fftfreq", lambda x: x * torch.fft.fftfreq(7, d=0.3), 2, 7),
    of_real("rfftfreq", lambda x: x * torch.fft.rfftfreq(8, d=0.3), 2, 5),
    row("core_to_pairs", "aten._fft_r2c.default", lambda x: real(aten._fft_r2c.default(x, [0, 2], 1, True)), f(3, 2, 6)),
    row("core_to_all", "aten._fft_r2c.default", lambda x: real(aten._fft_r2c.default(x, [1], 2, False)), f(3, 5)),
    row("core_pairs", "aten._fft_c2c.default", lambda x, y: real(aten._fft_c2c.default(torch.complex(x, y), [1, 0], 2, False)),
        f(3, 4), f(3, 4)),
    row("core_to_real", "aten._fft_c2r.default", lambda x, y: aten._fft_c2r.default(torch.complex(x, y), [0, 1], 0, 6),
        f(3, 4), f(3, 4)),
    row("fnet", "aten.fft_fft.default", fnet, f(2, 6, 8)),
    row("operator", "aten.einsum.default aten.fft_irfft2.default", operator, f(2, 2, 8, 9), f(2, 3, 3, 3, 2), f(2, 3, 3, 3, 2)),
    row("filtered", "aten.fft_rfft2.default", filtered, f(2, 6, 7, 3), f(6, 4, 3, 2)),
    row("correlation", "aten.fft_irfft.default", correlation, f(2, 9, 3), f(2, 9, 3)),
    row("stft", "aten.stft.default", lambda x: spectrum(x, window=HANN), f(2, 40)),
    row("stft_plain", "aten.stft.default", lambda x: spectrum(x, center=False, hop_length=5), f(41)),
    row("stft_short", "aten.stft.default",
        lambda x: spectrum(x, hop_length=4, win_length=9, window=HAMMING, normalized=True, onesided=False), f(2, 30)),
    row("stft_window", "aten.stft.default", lambda x, w: spectrum(x, window=w, hop_length=15, pad_mode="constant"), f(2, 40), f(12)),
    row("stft_real", "aten.stft.default", lambda x: torch.stft(x, 12, window=HANN, return_complex=False), f(2, 40)),
    row("stft_center", "aten.stft.center", lambda x: real(aten.stft.center(x, 12, 5, 9, HAMMING, return_complex=True)), f(2, 40)),
    row("stft_wide", "aten.stft.default", lambda x: spectrum(x, window=HANN.double()), f(2, 40, dtype=WIDE)),
    row("spectrogram", "aten.abs.default", lambda x: torch.stft(x, 12, window=HANN, return_complex=True).abs() ** 2, f(2, 40)),
    row("istft", "aten.istft.default", lambda x: there_and_back(x, window=HANN), f(2, 40)),
    row("istft_plain", "aten.istft.default", lambda x: there_and_back(x, normalized=True, center=False, hop_length=5), f(42)),
    row("istft_short", "aten.istft.default",
        lambda x: there_and_back(x, hop_length=4, win_length=9, window=HAMMING, onesided=False), f(2, 30)),
    row("istft_length", "aten.istft.default",
        lambda x, y: torch.istft(torch.complex(x, y), 12, window=HANN, length=25), f(2, 7, 11), f(2, 7, 11)),
    row("hann", "aten.hann_window.default", lambda x: x * torch.hann_window(12), f(2, 12)),
    row("hann_whole", "aten.hann_window.periodic", lambda x: x * torch.hann_window(11, False), f(2, 11)),
    row("hann_one", "aten.hann_window.periodic", lambda x: x * torch.hann_window(1, False), f(2, 1)),
    row("hamming", "aten.hamming_window.default", lambda x: x * torch.hamming_window(12, dtype=WIDE).float(), f(2, 12)),
    row("hamming_whole", "aten.hamming_window.periodic", lambda x: x * torch.hamming_window(9, False), f(2, 9)),
    row("hamming_alpha", "aten.hamming_window.periodic_alpha", lambda x: x * torch.hamming_window(9, True, 0.6), f(2, 9)),
    row("hamming_beta", "aten.hamming_window.periodic_alpha_beta", lambda x: x * torch.hamming_window(9, True, 0.6, 0.3), f(2, 9)),
    # --- Refused ---
    row("stft_hops", "aten.stft.default", lambda x: real(torch.stft(x, 258, 2, center=False, return_complex=True)), f(1, 300),
        refused="128 times hop_length"),
    of_real("rfft_prime", lambda x: torch.fft.rfft(x), 1031, refused="prime factor 1031 is beyond 1024"),
    row("stft_complex", "aten.stft.default", lambda x, y: spectrum(torch.complex(x, y)[:, 6:-6], center=False), f(2, 40), f(2, 40),
        refused="complex signals"),
    row("istft_unknown", "aten.istft.default", lambda x, y, w: torch.istft(torch.complex(x, y), 12, window=w), f(2, 7, 11),
        f(2, 7, 11), f(12, kind="positive"), refused="window is not known"),
]
