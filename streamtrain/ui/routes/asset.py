"""Scripts and styles of the pages; none comes from elsewhere."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from streamtrain.ui.cluster import Cluster

HELP = "scripts and styles of the pages"
PATH = "/assets/{name}"
ASSETS = Path(__file__).parent.parent / "assets"


def answer(cluster: Cluster, request: Any) -> Any:
    from fastapi import Response

    path = ASSETS / request.path_params["name"]
    if path.parent != ASSETS or not path.is_file():
        return Response("no such file\n", 404, media_type="text/plain")
    return Response(path.read_bytes(), media_type=mimetypes.guess_type(path.name)[0])
