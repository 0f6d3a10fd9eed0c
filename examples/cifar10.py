"""CIFAR-10 as an archive of JPEGs, NAME/CLASS/NUMBER.jpg, into JSON lines of pictures and what is on them, mixed.

python cifar10.py train.tar > cifar10.jsonl
"""

from __future__ import annotations

import base64
import json
import random
import sys
import tarfile

with tarfile.open(sys.argv[1]) as archive:
    names = sorted(name for name in archive.getnames() if name.endswith(".jpg"))
    random.Random(1).shuffle(names)
    for name in names:
        file = archive.extractfile(name)
        assert file is not None
        print(json.dumps({"photo": base64.b64encode(file.read()).decode(), "what": name.split("/")[-2]}))
