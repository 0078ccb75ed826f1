"""`python -m pyrometer`: the command line, for where the script is not on the path."""

from pyrometer.cli.main import run

if __name__ == "__main__":
    run()
