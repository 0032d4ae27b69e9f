"""A process of the operator. Records `SIGUSR1` and `SIGUSR2` in the file that its argument names."""

import os
import signal
import sys
import time

os.close(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY))


def note(number, _):
    with open(sys.argv[1], "a") as file:
        file.write(f"{signal.Signals(number).name}\n")


signal.signal(signal.SIGUSR1, note)
signal.signal(signal.SIGUSR2, note)
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.2)
