"""`python -m pywebgpu`: the command `pywebgpu` where nothing is installed on the path."""

import sys

from pywebgpu.cli import main

sys.exit(main())
