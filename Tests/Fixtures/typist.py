"""Runs a program on a terminal of its own, waits for its words, and types. Prints all that the terminal showed, and ends with the
program's status; 98 when the program ended before the last word, 99 when a word did not come.

    python3 typist.py STEPS PROGRAM ARGUMENT...

STEPS is a JSON list of pairs: the words that are waited for, and what is typed then; null kills the program.
"""
import json
import os
import pty
import select
import signal
import sys

steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, place = b"", 0


def end(status):
    sys.stdout.buffer.write(shown)
    sys.stdout.flush()
    os._exit(status)


while True:
    if not select.select([terminal], [], [], 60)[0]:
        os.kill(pid, signal.SIGKILL)
        end(99)
    try:
        part = os.read(terminal, 4096)
    except OSError:  # the last writer has closed the terminal
        part = b""
    if not part:
        break
    shown += part
    while steps and steps[0][0].encode() in shown[place:]:
        words, typed = steps.pop(0)
        place = shown.index(words.encode(), place) + len(words.encode())
        if typed is None:
            os.kill(pid, signal.SIGKILL)
        else:
            os.write(terminal, typed.encode())
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
end(98 if steps else status if status >= 0 else 128 - status)
