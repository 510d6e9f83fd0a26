"""`python -m alerts` writes the generated files, `python -m alerts --check` compares them."""

import sys

from alerts.write import main

if __name__ == "__main__":
    sys.exit(main())
