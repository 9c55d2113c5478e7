#!/usr/bin/env python3
"""launch.py COMPILER ARGUMENT...: runs the compiler, and says every ten seconds that it still works."""
import os
import subprocess
import sys
import time


def main(command):
    begin, process = time.monotonic(), subprocess.Popen(command)
    source = next((os.path.basename(word) for word in command if word.endswith(".c")), command[0])
    while True:
        try:
            return process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            print(f"compiling {source}: {time.monotonic() - begin:.0f} s so far", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
