/// The specification of the messages about a form that makes no sense.
extension FormConfigTests {
    static let mistakes: [(lines: String, expected: String)] = [
        (
            "    preset: breakpoint\n    send: {fields: {crc: \"{crc23}\"}}",
            "a.yaml:8:26: destinations.a.send.fields.crc: names `{crc23}`, which does not exist; did you mean `{crc32}`?"
        ),
        (
            "    preset: breakpoint\n    success: {json: [\"/a is b\"]}",
            "a.yaml:8:21: destinations.a.success.json: takes conditions like"
        ),
        (
            "    preset: webuploader",
            "a.yaml:4:3: destinations.a.finish: is missing: servers of this preset keep blocks until a request of their own"
        ),
        (
            "    preset: webuploader\n    finish: nothing",
            "a.yaml:8:13: destinations.a.finish: "
        ),
        ("    preset: breakpint", "a.yaml:7:13: destinations.a.preset: takes one of"),
        (
            "    preset: plupload\n    parallel_blocks: 2",
            "a.yaml:8:22: destinations.a.parallel_blocks: must be 1: this server joins blocks in the order of their arrival"
        ),
        (
            "    preset: custom\n    open:\n      fields: {a: b}\n    send: {fields: {n: \"{index0}\"}}",
            "a.yaml:8:5: destinations.a.open.token: is missing: where the answer names the upload"
        ),
        (
            "    preset: flow\n    headers: {Content-Length: \"1\"}",
            "a.yaml:8:31: destinations.a.headers.Content-Length: cannot be set: it belongs to the protocol"
        ),
        (
            "    preset: custom\n    send: {fields: {x: y}}",
            "destinations.a.send: does not say which block it carries"
        ),
        (
            "    preset: resumable\n    send: {omit: [resumableChunkNumber], query: {resumableChunkNumber: \"\"}}",
            "destinations.a.send: does not say which block it carries"
        ),
        (
            "    preset: custom\n    send: {fields: {n: \"{index0}\"}, only_when_resumed: [n]}",
            "a.yaml:8:11: destinations.a.send: does not say which block it carries"
        ),
        (
            "    preset: fineuploader\n    send: {only_when_resumed: [qqpartindex, qqpartbyteoffset, qqchunksize]}",
            "a.yaml:8:11: destinations.a.send: does not say which block it carries"
        ),
        (
            "    preset: dropzone\n    headers: {accept: text/plain}",
            "a.yaml:8:23: destinations.a.headers.accept: differs from `Accept` only in case"
        ),
        (
            "    preset: flow\n    send: {fields: {meta: {json: {}}}}",
            "a.yaml:8:34: destinations.a.send.fields.meta.json: is empty"
        ),
        (
            "    preset: flow\n    send: {fields: {meta: {json: {of: {json: {}}}}}}",
            "destinations.a.send.fields.meta.json.of.json: is empty"
        ),
        (
            "    preset: flow\n    headers: {X: \"{secret:s}\"}\n    secrets: {s: {fil: /x}}",
            "destinations.a.secrets.s.fil: no setting is called `fil`"
        ),
        (
            "    preset: flow\n    headers: {X: \"x{credential}\"}\n    credential: abc",
            "a.yaml:9:17: destinations.a.credential: takes a secret as"
        ),
        (
            "    preset: resumable\n    probe: {list: /l, query: {n: \"{index1}\"}}",
            "a.yaml:8:34: destinations.a.probe.query.n: names `{index1}`, which is about one block"
        ),
        (
            "    preset: flow\n    success: {status: []}",
            "a.yaml:8:23: destinations.a.success.status: is empty, so no answer would acknowledge a block; list some"
        ),
        (
            "    preset: flow\n    send: {omit: [flowCunkNumber]}",
            "a.yaml:8:18: destinations.a.send.omit: names `flowCunkNumber`, and the request has no such field, parameter or "
                + "header; did you mean `flowChunkNumber`?"
        ),
        (
            "    preset: plupload\n    send: {omit_when_single: [size]}",
            "a.yaml:8:30: destinations.a.send.omit_when_single: names `size`, and the request has no such field, parameter "
                + "or header; there are: chunk, chunks, name"
        ),
        (
            "    preset: dropzone\n    probe: {}",
            "a.yaml:8:12: destinations.a.probe: sets nothing; take it out, or set one of"
        ),
        (
            "    preset: flow\n    send: {}",
            "a.yaml:8:11: destinations.a.send: sets nothing; take it out, or set one of"
        ),
        (
            "    preset: dropzone\n    probe: {status: [200]}",
            "a.yaml:8:12: destinations.a.probe: does not say which block to ask for: `query` or `url` must contain it"
        ),
        (
            "    preset: dropzone\n    probe: {query: {id: \"{id}\"}}",
            "a.yaml:8:12: destinations.a.probe: does not say which block to ask for"
        ),
        (
            "    preset: flow\n    probe: {status: []}",
            "a.yaml:8:21: destinations.a.probe.status: is empty, so no answer would confirm a block"
        ),
        (
            "    preset: flow\n    probe: {url: \"https://b.example/\"}",
            "a.yaml:8:18: destinations.a.probe.url: takes a path on the destination's own server"
        ),
        (
            "    preset: dropzone\n    probe: {header: \"X Y\"}",
            "a.yaml:8:21: destinations.a.probe.header: takes the name of a header, like `Range`, and not `X Y`"
        ),
        (
            "    preset: dropzone\n    probe: {header: Range, base: 0}",
            "a.yaml:8:34: destinations.a.probe.base: is the first number of a list, and `list` is not set"
        ),
        (
            "    preset: dropzone\n    probe: {list: /a, query: {n: \"{index1}\"}}",
            "a.yaml:8:34: destinations.a.probe.query.n: names `{index1}`, which is about one block"
        ),
        (
            "    preset: flow\n    probe: {method: DELETE}",
            "a.yaml:8:21: destinations.a.probe.method: takes `GET` or `POST`, not `DELETE`"
        ),
        (
            "    preset: flow\n    headers: {\"X(Y)\": \"1\"}",
            "a.yaml:8:15: destinations.a.headers: takes a header's name: 1 to 64 letters"
        ),
        (
            "    preset: flow\n    send: {headers: {\"X/Y\": \"1\"}}",
            "a.yaml:8:22: destinations.a.send.headers: takes a header's name: 1 to 64 letters"
        ),
        (
            "    preset: flow\n    headers: {X-Sum: \"{crc32}\"}",
            "a.yaml:8:22: destinations.a.headers.X-Sum: names `{crc32}`, which is about one block, and these go with every "
                + "request; put it under `send.headers`"
        ),
        (
            "    preset: flow\n    finish: {url: \"/done/{md5}\"}",
            "a.yaml:8:19: destinations.a.finish.url: names `{md5}`, which is about one block"
        ),
        (
            "    preset: breakpoint\n    open: {file_part: {filename: \"{index0}\"}}",
            "a.yaml:8:34: destinations.a.open.file_part.filename: names `{index0}`, which is about one block"
        ),
        (
            "    preset: breakpoint\n    open: {fields: {token: \"{token}\"}}",
            "a.yaml:8:28: destinations.a.open.fields.token: names `{token}`, which only the answer to this request gives"
        ),
        (
            "    preset: flow\n    abort: {url: /gone, fields: {t: \"{mtime}\"}}",
            "a.yaml:8:37: destinations.a.abort.fields.t: names `{mtime}`, which is not known any more"
        ),
        (
            "    preset: breakpoint\n    done: /data/~2",
            "a.yaml:8:11: destinations.a.done: takes a JSON pointer, like `/data/fileUrl`, or `none`, and not `/data/~2`; a "
                + "`~` in a name is written `~0`, and a `/` in one `~1`"
        ),
        (
            "    preset: custom\n    open: {token: data}\n    send: {fields: {t: \"{token}\", n: \"{index0}\"}}",
            "a.yaml:8:19: destinations.a.open.token: takes a JSON pointer, like `/data/fileUrl`"
        ),
        (
            "    preset: flow\n    secrets: {\"a}\": {env: A}}",
            "a.yaml:8:15: destinations.a.secrets: takes a name of 1 to 64 letters, digits, `_`, `.` or `-`; what is "
                + "written here is not shown, since it may be a secret"
        ),
        (
            "    preset: flow\n    secrets: {nas: abc}",
            "a.yaml:8:20: destinations.a.secrets.nas: takes a secret as `{file: /etc/sluice/token}`"
        ),
        (
            "    preset: flow\n    block: {size: 99999 TiB}",
            "a.yaml:8:19: destinations.a.block.size: takes 1 B to 16 TiB: no file is larger"
        ),
        (
            "    preset: flow\n    send: {method: GET}",
            "a.yaml:8:20: destinations.a.send.method: takes `POST` or `PUT`, not `GET`"
        ),
        (
            "    preset: flow\n    finish: {url: /done, method: GET, fields: {id: \"{id}\"}}",
            "a.yaml:8:34: destinations.a.finish.method: cannot be `GET`, which carries no form"
        ),
        (
            "    preset: flow\n    send: {fields: {meta: {json: {size: \"{totl}\"}}}}",
            "a.yaml:8:41: destinations.a.send.fields.meta.json.size: names `{totl}`, which does not exist; did you mean `{total}`?"
        ),
        (
            "    preset: flow\n    headers: {X-Meta: {json: {size: \"{total}\"}}}",
            "a.yaml:8:24: destinations.a.headers.X-Meta.json"
        ),
    ]
}
