"""Running programs, and saying what is done."""
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
START = time.monotonic()


class Problem(Exception):
    """Why no release can be made, in words for the person who asked for one."""


def say(text):
    """Tell what is being done, with the seconds since the start."""
    print(f"dist: {time.monotonic() - START:4.0f} s  {text}", file=sys.stderr, flush=True)


def run(*words, env=None, cwd=ROOT, stdin=None, ok=(0,)):
    """Run a program and return its standard output as text. Standard error passes through."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, cwd=cwd, input=stdin, stdout=subprocess.PIPE, text=True, check=False,
                              env=None if env is None else {**os.environ, **env})
    except FileNotFoundError as error:
        raise Problem(f"{words[0]} is not installed ({error})") from error
    if done.returncode not in ok:
        raise Problem(f"`{' '.join(words[:6])}` ended with status {done.returncode}")
    return done.stdout


def cache():
    """Folder of what was fetched; it outlives the source tree."""
    named = os.environ.get("RAILGAUGE_DIST_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railgauge-dist"
    folder = Path(named) if named else usual
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def cargo():
    """The cargo to build with."""
    return os.environ.get("CARGO", "cargo")
