"""The tests. `python -m tests` runs them; README.md here says which folder holds what.

No test reads Programs that another process compiled.
"""

import os

os.environ.setdefault("PYWEBGPU_CACHE", "")
