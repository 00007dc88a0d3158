"""The package tussi, a minimal tus server that forgets what is finished. Prints "ready PORT".

    tussi_server.py FOLDER [PLACE…]     finished files land in FOLDER/done; those of /PLACE/ in FOLDER/PLACE/done
"""

import socket
import sys
from pathlib import Path

import uvicorn
from tussi import FilesystemStorage, TUSApp


def endpoint(folder):
    for name in ("stage", "done"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return TUSApp(storage=FilesystemStorage(directory=folder / "stage"), completed_dir=folder / "done")


folder = Path(sys.argv[1])
anywhere = endpoint(folder)
places = {name: endpoint(folder / name) for name in sys.argv[2:]}


async def app(scope, receive, send):
    first = scope.get("path", "/").split("/")[1:2]
    await places.get(first[0] if first else "", anywhere)(scope, receive, send)


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print("ready", listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])
