"""The package tussi, a minimal tus server that forgets what is finished. Prints "ready PORT".

    tussi_server.py FOLDER        finished files land in FOLDER/done
"""

import socket
import sys
from pathlib import Path

import uvicorn
from tussi import FilesystemStorage, TUSApp

folder = Path(sys.argv[1])
for name in ("stage", "done"):
    (folder / name).mkdir(exist_ok=True)
app = TUSApp(storage=FilesystemStorage(directory=folder / "stage"), completed_dir=folder / "done")
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print("ready", listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])
