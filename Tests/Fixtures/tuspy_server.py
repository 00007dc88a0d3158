"""The package tuspyserver. Prints "ready PORT".

    tuspy_server.py FOLDER     uploads lie in FOLDER/up, finished or not
"""

import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from tuspyserver import create_tus_router

folder = Path(sys.argv[1]) / "up"
folder.mkdir(parents=True, exist_ok=True)
app = FastAPI()
app.include_router(create_tus_router(prefix="files", files_dir=str(folder)))
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print("ready", listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])
