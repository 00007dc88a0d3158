"""Other people's servers for chunked forms. Prints "ready PORT".

    form_servers.py flowjs|resumable|plupload FOLDER     files land in FOLDER/done, blocks in FOLDER/blocks
"""

import os
import sys
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

kind, folder = sys.argv[1], Path(sys.argv[2])
blocks, done = folder / "blocks", folder / "done"
for path in (blocks, done):
    path.mkdir(parents=True, exist_ok=True)


def serve(app):
    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    print("ready", server.server_port, flush=True)
    server.serve_forever()


def flowjs():
    import asyncio

    import tornado.web
    from flowjs.config import Config
    from flowjs.file import ChunkedFile
    from flowjs.requests import TornadoRequest

    class Upload(tornado.web.RequestHandler):
        def chunk(self):
            config = Config()
            config.set_temp_dir(str(blocks))
            return ChunkedFile(config, TornadoRequest(self))

        def get(self):
            self.set_status(200 if self.chunk().check_chunk() else 204)

        def post(self):
            chunk = self.chunk()
            if not chunk.validate_chunk():
                self.set_status(400)
                return
            chunk.save_chunk()
            if chunk.validate_file():
                chunk.save(str(done / self.get_argument("flowFilename")))

    async def main():
        server = tornado.web.Application([("/upload", Upload)]).listen(0, "127.0.0.1")
        print("ready", next(iter(server._sockets.values())).getsockname()[1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


def resumable():
    from flask import Flask, request
    from python_resumable import UploaderFlask

    app = Flask("resumable")

    @app.get("/upload")
    def probe():
        name = request.args["resumableIdentifier"]
        place = blocks / name / f"{name}.{request.args['resumableChunkNumber']}"
        return "", 200 if place.exists() else 204

    @app.post("/upload")
    def take():
        uploader = UploaderFlask(request.form, str(done), str(blocks), request.files["file"])
        uploader.upload_chunk()
        if uploader.check_status():
            uploader.assemble_chunks()
            uploader.cleanup()
        return "ok"

    serve(app)


def plupload():
    from bottle import Bottle, request
    from plupload import plupload as package

    app = Bottle()

    class Files:
        """What the package expects of an older bottle."""

        def __init__(self, files):
            self.files = files

        def __len__(self):
            return len(self.files)

        @property
        def file(self):
            return self.files["file"]

    @app.post("/upload")
    def take():
        return package.save(request.forms, Files(request.files), os.fspath(done))

    serve(app)


{"flowjs": flowjs, "resumable": resumable, "plupload": plupload}[kind]()
