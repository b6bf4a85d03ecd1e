"""What hosts find in their environment: a cache of their own, of which nothing is left."""

import os
import sys
import tempfile

if sys.platform != "emscripten":
    cache = tempfile.TemporaryDirectory()  # Until this process ends.
    os.environ["PYWEBGPU_CACHE"] = cache.name
