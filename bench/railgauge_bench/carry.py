"""Programs of this machine, with every library they need, for the hosts of the lab."""
import re
import subprocess
import tarfile
from pathlib import Path

NEEDED = re.compile(r"(?:=> |^\s+)(/\S+) \(0x")


def libraries(files):
    """The shared libraries that the loader maps for these files, as the paths it prints."""
    done = subprocess.run(["ldd", *map(str, files)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return sorted({match[1] for line in done.stdout.splitlines() if (match := NEEDED.search(line))})


def pack(archive, files, folders=()):
    """Writes a tar of these files and of the folders as they are, and of all the libraries they need. The guests have
    /lib as a link into /usr: what lies there is named so."""
    inside = [file for folder in folders for file in Path(folder).rglob("*.so*") if file.is_file()]
    with tarfile.open(archive, "w") as tar:
        for folder in folders:
            tar.add(folder, arcname=str(folder).lstrip("/"))
        for name in [*map(str, files), *libraries([*files, *inside])]:
            place = name if not name.startswith(("/lib/", "/lib64/")) else f"/usr{name}"
            tar.add(Path(name).resolve(), arcname=place.lstrip("/"))
