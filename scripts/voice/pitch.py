"""Pitch and spectral distance of pairs of waves, to judge a codec without listening."""
import numpy as np

RATE = 16000
HOP = 160
WINDOW = 800
LOW_HZ, HIGH_HZ = 90, 330


def track(wav):
    """Pitch in Hz of every 10 ms by normalised autocorrelation, 0 where unvoiced; wav at 16 kHz."""
    wav = np.asarray(wav, np.float64)
    spectrum = np.fft.rfft(wav)
    spectrum[int(900 * len(wav) / RATE):] = 0
    wav = np.fft.irfft(spectrum, len(wav))
    lags = np.arange(RATE // HIGH_HZ, RATE // LOW_HZ + 1)
    span = WINDOW + lags[-1] + 1
    wav = np.pad(wav, (WINDOW // 2, span))
    out = []
    level = np.sqrt(np.mean(wav ** 2)) + 1e-9
    for start in range(0, len(wav) - span, HOP):
        a = wav[start:start + WINDOW]
        if np.sqrt(np.mean(a ** 2)) < 0.1 * level:
            out.append(0.0)
            continue
        n = 2048
        segment = wav[start:start + span]
        cross = np.fft.irfft(np.fft.rfft(segment, n) * np.conj(np.fft.rfft(a, n)), n)[lags]
        energy = np.concatenate([[0], np.cumsum(segment ** 2)])
        norm = np.sqrt((energy[lags + WINDOW] - energy[lags]) * np.sum(a ** 2)) + 1e-9
        score = cross / norm
        best = int(np.argmax(score))
        shorter = [i for i in range(1, best) if score[i] > 0.93 * score[best] and score[i] >= score[i - 1] and score[i] >= score[i + 1]]
        pick = shorter[0] if shorter else best
        out.append(RATE / lags[pick] if score[pick] > 0.6 else 0.0)
    return np.array(out)


def agreement(pairs):
    """(correlation of log pitch on frames voiced in both, share of frames voiced alike, median |cents|) over (reference, test) pairs."""
    a, b, alike, total = [], [], 0, 0
    for reference, test in pairs:
        p, q = track(reference), track(test)
        n = min(len(p), len(q))
        p, q = p[:n], q[:n]
        both = (p > 0) & (q > 0)
        a.append(np.log(p[both]))
        b.append(np.log(q[both]))
        alike += int(((p > 0) == (q > 0)).sum())
        total += n
    a, b = np.concatenate(a), np.concatenate(b)
    if len(a) < 10:
        return 0.0, alike / max(total, 1), 9999.0
    return float(np.corrcoef(a, b)[0, 1]), alike / total, float(np.median(np.abs(a - b)) * 1200 / np.log(2))
