"""The journal of a run as docs/results.md describes it: cases stand in tables, links in lines of their own."""
import json


def cases(planned):
    """The whole cases of `Planned` or `Confirming`."""
    table = planned["cases"]
    if isinstance(table, list):
        return table
    ports = table["ports"]
    return [
        {"id": number, "test": table["tests"][test], "round": round_, "cell": table["cells"][cell],
         "flow": {"from": ports[from_], "to": ports[to], "members": [ports[member] for member in members]}}
        for number, (test, round_, cell, from_, to, *members) in enumerate(table["rows"], table["first"])
    ]


def events(path):
    """Pairs of an event's name and what it holds; the link of an outcome stands in it, or None."""
    links = {}
    with open(path) as journal:
        for line in journal:
            line = json.loads(line)
            if not isinstance(line["event"], dict):
                continue
            for kind, event in line["event"].items():
                if kind == "Link":
                    links[line["n"]] = event
                if kind == "Outcome":
                    event["link"] = event.get("link") or links.get(event.get("link_line"))
                yield kind, event
