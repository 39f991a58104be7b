"""perftest's programs between two places, and what they print."""
import subprocess
import sys

PORT = 18515
# Seconds after which a run of perftest is given up. With events it now and then sleeps for one that never comes, and
# against a silent peer it retries without end.
PATIENCE = 15
# On a busy machine it does so more often: two in a row were seen.
TRIES = 5


class Hung(Exception):
    """perftest did not end, more than once."""


def version():
    """The version of the package that this machine has, and with it the hosts of the lab."""
    return subprocess.run(["ib_write_bw", "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


class Perftest:
    """Runs a server at `place.far` and a client at `place.near`, once the server really listens. `before` are words put
    before the program, such as those of env(1)."""

    def __init__(self, place, before=()):
        self.place, self.before = place, before
        self.hung = 0

    def run(self, program, *options):
        """What the client printed; a run that hangs is counted and begun anew."""
        for _ in range(TRIES):
            client = self.once(program, *options)
            if client.returncode == 0:
                return client.stdout
            if client.returncode != 124:
                sys.exit(f"{' '.join(client.args)} ended with {client.returncode}:\n{client.stdout}")
            self.hung += 1
        raise Hung

    def once(self, program, *options):
        place = self.place
        words = [str(word) for word in options]
        ends = [" ".join(["timeout", str(PATIENCE), *self.before, program, "-F", "-d", device, "-x", str(place.gid_index),
                          "-p", str(PORT), *words]) for device in place.devices]
        # State 0A is LISTEN.
        listening = f"grep -q ':{PORT:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6"
        waiting = f"until {listening}; do kill -0 $! || exit; sleep 0.02; done"
        script = f"{ends[1]} >/dev/null 2>&1 & {waiting}; echo listening; wait $!"
        server = subprocess.Popen([*place.far, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            if server.stdout.readline() != b"listening\n":
                sys.exit(f"perftest's server does not start: {ends[1]}")
            client = subprocess.run([*place.near, f"{ends[0]} {place.server}"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            # Its own patience ends it, so that the next run finds the port free.
            server.wait(2 * PATIENCE)
        finally:
            server.kill()
            server.wait()
        return client

    def bandwidth(self, op, size, depth, signal_every, iterations, post_list=None):
        """Messages per second of one run: their rate has more digits than the bandwidth beside it."""
        # No peak, which costs a clock reading per message. Its warm-up never ends with a signalling interval (6.06).
        options = ["-s", size, "-t", depth, "-Q", signal_every, "-n", iterations, "-N", "-u", self.place.timeout]
        if post_list:
            options += ["-l", post_list]
        # bytes, iterations, peak, average, message rate in millions
        return 1e6 * figures(self.run(f"ib_{op}_bw", *options), size)[4]

    def latency(self, op, size, events, iterations):
        """Minimum, median and 99th percentile in nanoseconds."""
        options = ["-s", size, "-n", iterations, "-u", self.place.timeout]
        if op.startswith("atomic"):
            # Eight bytes whatever is asked; perftest has fetch-and-add only by name.
            op, size, options = "atomic", 8, ["-A", "FETCH_AND_ADD", *options[2:]]
        if events:
            options.append("-e")
        # bytes, iterations, minimum, maximum, typical, average, deviation, 99 %, 99.9 %
        row = figures(self.run(f"ib_{op}_lat", *options), size)
        return {"min": 1e3 * row[2], "p50": 1e3 * row[4], "p99": 1e3 * row[7]}


def figures(text, size):
    """The row of numbers that begins with the size."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == str(size):
            return [float(word) for word in words]
    sys.exit(f"perftest printed no figures:\n{text}")
