"""Programs run to their end."""
import subprocess

from .errors import LabError


def run(*command, stdin=None, ok=(0,)):
    """Run a program and return what it printed; anything but the expected exit codes is a LabError with its words."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise LabError(f"{words[0]} is not installed; ./setup --tests installs it") from None
    if done.returncode not in ok:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise LabError(f"`{' '.join(words)}` ended with {done.returncode}: {said}")
    return done.stdout
