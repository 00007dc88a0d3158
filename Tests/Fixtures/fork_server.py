"""Runs Python programs as forks of one interpreter that has imported their packages: a fork takes milliseconds, a start a second.

    fork_server.py PORT FOLDER MODULE...    imports each MODULE, from FOLDER too, and serves at 127.0.0.1:PORT

A connection sends one line of JSON, {"script", "arguments", "environment", "output", "errors"}. A fork runs the script as a program of its own
would run it, and lives as long as the connection: it ends when the other end closes.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading

PR_SET_PDEATHSIG = 1


def end_with(connection):
    try:
        while connection.recv(4096):
            pass
    except OSError:
        pass
    os._exit(0)


def run(connection, wish):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, wish["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, wish["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        os.dup2(os.open(path, flags, 0o600), number)
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()
    os.environ.update(wish["environment"])
    sys.argv = [wish["script"], *wish["arguments"]]
    sys.path[0] = os.path.dirname(wish["script"])
    runpy.run_path(wish["script"], run_name="__main__")


def main():
    port, folder, modules = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    sys.path.insert(0, folder)
    for module in modules:
        importlib.import_module(module)
    # What is shared stays shared: the collector would write to every page.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    while True:
        connection, _ = listener.accept()
        line = connection.makefile("rb").readline()
        if not line:
            connection.close()
            continue
        if os.fork() == 0:
            listener.close()
            status = 1
            try:
                run(connection, json.loads(line))
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        connection.close()


if __name__ == "__main__":
    main()
