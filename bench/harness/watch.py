#!/usr/bin/env python3
"""Passes the input of a harness on, and writes down when each prompt arrives: watch.py LOG PROGRAM WORD..."""

import subprocess
import sys
import time

log = open(sys.argv[1], "a", buffering=1)
harness = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    if b'"session/prompt"' in line:
        log.write(f"{time.time()}\n")
    harness.stdin.write(line)
    harness.stdin.flush()
harness.kill()
