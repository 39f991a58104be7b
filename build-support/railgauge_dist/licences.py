"""The licences of everything that is linked into the programs, as one text."""
import hashlib
import json
import re
from pathlib import Path

from .shell import cargo, run

NAMES = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.I)
HEAD = """\
Software of others in railgauge and its agents. Each part is used under the licence named beside it; the texts follow.
The programs also contain Rust's standard library (MIT OR Apache-2.0, https://www.rust-lang.org/policies/licenses).
"""


def linked(metadata):
    """The packages that are linked into the programs: reached from them without build and development dependencies."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    own = [id for id, package in packages.items() if package["name"] in ("railgauge", "railgauge-agent")]
    reached, ahead = set(own), list(own)
    while ahead:
        for needed in nodes[ahead.pop()]["deps"]:
            linked_in = any(kind["kind"] is None for kind in needed["dep_kinds"])
            if linked_in and needed["pkg"] not in reached:
                reached.add(needed["pkg"])
                ahead.append(needed["pkg"])
    return [packages[id] for id in reached if packages[id]["source"] is not None]


def files(package):
    """The licence files of a package, as texts."""
    folder = Path(package["manifest_path"]).parent
    found = [path for path in sorted(folder.iterdir()) if path.is_file() and NAMES.match(path.name)]
    if package.get("license_file"):
        found.append(folder / package["license_file"])
    return [path.read_text("utf-8", errors="replace").strip() for path in dict.fromkeys(found)]


def third_party(targets):
    """The text, for programs of these targets."""
    every = {}
    for target in sorted(targets):
        text = run(cargo(), "metadata", "--format-version", "1", "--locked", "--filter-platform", target)
        every |= {(package["name"], package["version"]): package for package in linked(json.loads(text))}
    texts, names, table = {}, {}, []
    for (name, version), package in sorted(every.items()):
        table.append(f"  {name} {version}: {package['license'] or 'see its text'}")
        for text in files(package) or [f"(This package brings no text. Its licence: {package['license']}.)"]:
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, text)
            names.setdefault(key, []).append(f"{name} {version}")
    parts = [HEAD, "\n".join(table)]
    rule = "-" * 80
    parts += [f"{rule}\n{', '.join(names[key])}\n{rule}\n\n{text}" for key, text in texts.items()]
    return "\n\n".join(parts) + "\n"
