# PYTHON_ARGCOMPLETE_OK
"""``python -m medyanpy`` is the command ``medyanpy``."""

import sys

from medyanpy.cli import main

sys.exit(main())
