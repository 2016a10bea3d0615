"""python -m bench: see `main`."""

from bench.main import main

if __name__ == "__main__":
    main()
