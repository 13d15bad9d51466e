#!/usr/bin/env python3
"""Prints the licences of every crate in the binary, each text once with the crates that have it."""

import json
import pathlib
import subprocess

TARGET = "x86_64-unknown-linux-gnu"
NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")

metadata = json.loads(subprocess.check_output(
    ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET]))
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

# From muster down, by dependencies that end up in the binary.
seen, left = set(), [metadata["resolve"]["root"]]
while left:
    one = left.pop()
    if one in seen:
        continue
    seen.add(one)
    for dependency in nodes[one]["deps"]:
        if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
            left.append(dependency["pkg"])
seen.discard(metadata["resolve"]["root"])

texts, bare = {}, []
for package in sorted((packages[one] for one in seen), key=lambda p: (p["name"], p["version"])):
    title = f"{package['name']} {package['version']} ({package['license']})"
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name.lower().startswith(NAMES))
    if not files:
        bare.append(title)
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip()
        texts.setdefault(text, []).append(title)

print("muster is made with these works of others. Each text is followed by nothing of muster's own.")
for text, titles in sorted(texts.items(), key=lambda item: item[1][0]):
    print("\n" + "=" * 100)
    print("\n".join(dict.fromkeys(titles)))
    print("-" * 100 + "\n" + text)
if bare:
    print("\n" + "=" * 100)
    print("These come without a text of their licence; its name stands beside each:")
    print("\n".join(bare))
