#!/usr/bin/env python
"""Django's command line, with Koda's settings."""

import os
import sys

from django.core.management import execute_from_command_line

from runs.conf import ConfigError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "koda.settings")
    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        sys.exit(f"koda: {error}")


if __name__ == "__main__":
    main()
