"""Whether a guest's clock runs at the speed of this machine's.

A guest's kernel finds the rate of its time stamp counter by comparing it with a timer that is emulated. Where other
work keeps the emulation from running meanwhile, the rate is wrong, and every time the guest measures with it.
"""
import json
import subprocess
import time

# Uptime has 10 ms steps and the counter's rate is right within far less, so this is no tight bound.
TOLERANCE = 0.05
# A shorter stretch says nothing: what ssh takes is the error of both readings.
LEAST_STRETCH = 5.0


class Reading:
    """A guest's uptime, read between two moments of this machine's monotonic clock (which all processes share)."""

    def __init__(self, before, after, uptime):
        self.before, self.after, self.uptime = before, after, uptime

    @classmethod
    def take(cls, ssh):
        """Read it by this ssh command, or None if ssh does not get through."""
        before = time.monotonic()
        try:
            done = subprocess.run([*ssh, "cat", "/proc/uptime"], stdin=subprocess.DEVNULL, capture_output=True,
                                  check=False, timeout=15)
            return cls(before, time.monotonic(), float(done.stdout.split()[0])) if done.returncode == 0 else None
        except (subprocess.TimeoutExpired, ValueError, IndexError):
            return None

    def save(self, path):
        path.write_text(json.dumps([self.before, self.after, self.uptime]))

    @classmethod
    def load(cls, path):
        """What `save` left, or None."""
        try:
            return cls(*json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def older_than(self, begun):
        """Whether a guest that began at this moment would have to be older than it can be."""
        return self.uptime > (self.after - begun) * (1 + TOLERANCE)

    def complaint_since(self, earlier):
        """In words, what is wrong with the clock between two readings; None if nothing is, or if it cannot be told."""
        passed = self.uptime - earlier.uptime
        least, most = self.before - earlier.after, self.after - earlier.before
        if least < LEAST_STRETCH:
            return None
        if passed > most * (1 + TOLERANCE) or passed < least * (1 - TOLERANCE):
            return f"lab: the clock of this guest made {passed:.1f} s of {least:.1f} to {most:.1f} s"
        return None
