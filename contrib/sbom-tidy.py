#!/usr/bin/env python3
"""Prints an SBOM of cargo-cyclonedx without what differs from machine to machine: random serial numbers, folders.

usage: sbom-tidy.py FILE
"""

import datetime
import json
import os
import re
import sys
import uuid

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
# The package of the tree is told by its folder: `path+file:///where/it/was#0.1.0`, and in a purl `download_url=file://.`.
text = re.sub(r"path\+file://[^\"#]*#", "path+file:///muster#", text)
bom = json.loads(text)
time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
bom["metadata"]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
bom.pop("serialNumber", None)
# The same components have the same number.
bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True)).urn
print(json.dumps(bom, indent=1, sort_keys=True))
