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


class Unavailable(Problem):
    """Something that must be fetched cannot be had here: there is no network, or this system's packages lack it. `--quick` goes on
    without it and says so; a release does not."""


def say(text):
    """Tell what is being done, with the seconds since the start."""
    print(f"dist: {time.monotonic() - START:4.0f} s  {text}", file=sys.stderr, flush=True)


def skipped(what):
    """Note what could not be made or tried, also for ./test."""
    say(f"SKIPPED: {what}")
    listed = os.environ.get("RAILGAUGE_SKIPPED")
    if listed:
        with open(listed, "a", encoding="utf-8") as file:
            file.write(f"dist: {what}\n")


def run(*words, env=None, cwd=ROOT, stdin=None, ok=(0,), timeout=None):
    """Run a program and return its standard output as text. Standard error passes through. `timeout`: seconds it may take."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, cwd=cwd, input=stdin, stdout=subprocess.PIPE, text=True, check=False, timeout=timeout,
                              env=None if env is None else {**os.environ, **env})
    except FileNotFoundError as error:
        raise Problem(f"{words[0]} is not installed ({error})") from error
    except subprocess.TimeoutExpired as error:
        raise Problem(f"`{' '.join(words[:6])}` did not end within {timeout} s") from error
    if done.returncode not in ok:
        raise Problem(f"`{' '.join(words[:6])}` ended with status {done.returncode}")
    return done.stdout


# What pip and apt say of a file that arrived and is not the one that was meant. All else that they fail of is a file that did not.
WRONG = ("do not match the hashes", "hash sum mismatch", "gpg error", "not signed", "invalid signature", "unexpected size")
# Seconds for one fetch.
PATIENCE = 900


def fetched(*words, cwd=ROOT):
    """Run a program that fetches something and checks what it fetched."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=PATIENCE, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError as error:
        raise Unavailable(f"{words[0]} is not installed ({error})") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"`{' '.join(words[:6])}` did not end within {PATIENCE} s") from error
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        said = " ".join((done.stdout + done.stderr).lower().split())
        kind = Problem if any(words in said for words in WRONG) else Unavailable
        last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise kind(f"`{' '.join(words[:6])}` ended with status {done.returncode}: {last}")
    return done.stdout


def cache():
    """Folder of what was fetched; it outlives the source tree."""
    named = os.environ.get("RAILGAUGE_DIST_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railgauge-dist"
    folder = Path(named) if named else usual
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def write(file, text):
    """Write a file, but not one that is the same already: another ./dist may be reading it."""
    if not file.exists() or file.read_text("utf-8") != text:
        file.write_text(text, "utf-8")


def cargo():
    """The cargo to build with."""
    return os.environ.get("CARGO", "cargo")
