internal import Core

/// Settings for a widespread client or server, in the same keys that a person may set over them.
struct FormPreset: Sendable {
    let name: String
    let values: [String: SettingValue]

    static let custom = "custom"
    /// All presets in the order of the manual; `custom` starts empty.
    static let all: [FormPreset] = [
        breakpoint, resumable, flow, simpleUploader, dropzone, fineUploader, plupload, webUploader, blueimp,
        FormPreset(name: custom, values: [:]),
    ]
    static let names = all.map(\.name)

    /// Names and summaries for messages and help.
    static let summaries: [(name: String, summary: String)] = names.map { ($0, summary(of: $0)) }

    private static func summary(of name: String) -> String {
        switch name {
        case "breakpoint": "an opening request for a token, then blocks from 1 with their CRC-32"
        case "resumable": "Resumable.js: asked for each block, the last block takes the rest"
        case "flow": "Flow.js: asked for each block, the last block takes the rest"
        case "simple-uploader": "simple-uploader.js: as flow, without a prefix"
        case "dropzone": "Dropzone: blocks from 0"
        case "fineuploader": "Fine Uploader's traditional endpoint; `finish` where it joins on demand"
        case "plupload": "Plupload: a server that appends, so no block may come twice"
        case "webuploader": "WebUploader; with a `finish` of the server's own, or `finish: none`"
        case "blueimp": "jQuery File Upload: blocks by Content-Range, to a server that appends"
        default: "no preset values: only your own settings"
        }
    }

    /// Presets whose servers never join the blocks by themselves.
    static let needingFinish: Set<String> = [webUploader.name]

    static func named(_ name: String) -> FormPreset? { all.first { $0.name == name } }

    private init(name: String, values: [String: SettingValue]) {
        self.name = name
        self.values = values
    }

    /// - Parameters:
    ///   - fields: Form fields of each block.
    ///   - more: All other settings.
    private init(
        _ name: String, block: Int64, _ rule: PartPlan.Rule = .short, part: String = "file",
        filename: String = "{name}", fields: [String: String], success: [String] = ["200-299"],
        permanent: [String] = [], _ more: [String: SettingValue] = [:]
    ) {
        self.name = name
        var values = more.merging([
            "block.size": .bytes(block), "block.rule": .text(rule.rawValue), "send.file_part.name": .text(part),
            "send.file_part.filename": .text(filename), "send.fields": Self.map(fields),
            "success.status": .texts(success), "permanent.status": .texts(permanent),
        ]) { mine, _ in mine }
        var conditions: [String] = []
        if case .texts(let own)? = more["success.json"] { conditions = own }
        values["success.json"] = .texts(conditions + Self.noErrors)
        self.values = values
    }

    /// Signs of an error in a 200 answer, as scripts behind these clients were seen to give when they did not take a
    /// block. All presets share them, since each script was written by a different author. None of them rejects an
    /// answer that is empty, plain text, or JSON without these fields.
    private static let noErrors: [String] = {
        let words = "error, fail, failed, failure, false"
        // Fields that servers use for errors. `/files/*/error` is jQuery File Upload's, `/*/error` stands in a wrapper
        // or a list.
        let empty = [
            "/error", "/Error", "/errors", "/*/error", "/*/errors", "/files/*/error", "/errno", "/errcode", "/errCode",
            "/error_code", "/errorCode", "/*/errno", "/*/errcode", "/*/error_code",
        ]
        // Plupload's tutorials answer `{"OK": 0}`. A status or code may be an HTTP status; 4xxxx and 5xxxx are derived
        // from those.
        let flags = ["/success", "/Success", "/*/success", "/ok", "/OK"]
        let states = ["/status", "/state", "/result"]
        return empty.map { "\($0) empty" } + flags.map { "\($0) not 0, \(words)" }
            + states.map { "\($0) not \(words), 400-599" }
            + ["/code", "/*/code"].map { "\($0) not \(words), -1, 400-599, 40000-59999" }
    }()

    private static func map(_ texts: [String: String]) -> SettingValue { .map(texts.mapValues { .literal($0) }) }

    private static let browser = map([
        "Accept": "application/json", "Cache-Control": "no-cache", "X-Requested-With": "XMLHttpRequest",
    ])

    private static let breakpoint: FormPreset = {
        let common = [
            "blockSize": "{block_size}", "totFileSize": "{total}", "suffix": "{ext}", "token": "{credential}",
        ]
        return FormPreset(
            "breakpoint", block: 1 << 20, part: "block",
            fields: common.merging(["sequenceNo": "{index1}", "upToken": "{token}", "crc": "{crc32}"]) { $1 },
            permanent: ["400", "401", "403", "405", "409", "413", "415", "422"],
            [
                "open.fields": map(common.merging(["sequenceNo": "0"]) { $1 }),
                "open.file_part.name": .text("block"), "open.token": .text("/data/upToken"),
                "success.json": .texts(["/data exists", "/data not null"]), "done": .text("/data/fileUrl"),
                // The answer to a token of the server's when it does not know the upload any more.
                "restart.status": .texts(["404", "410"]),
            ])
    }()

    private static func resumableFields(_ prefix: String) -> [String: String] {
        func name(_ word: String) -> String {
            prefix.isEmpty ? word.prefix(1).lowercased() + word.dropFirst() : prefix + word
        }
        return [
            name("ChunkNumber"): "{index1}", name("ChunkSize"): "{block_size}",
            name("CurrentChunkSize"): "{length}", name("TotalSize"): "{total}", name("Identifier"): "{id}",
            name("Filename"): "{name}", name("RelativePath"): "{relpath}", name("TotalChunks"): "{count}",
        ]
    }

    private static func flowLike(
        _ name: String, _ fields: [String: String], success: [String], permanent: [String], probe: [String],
        inQuery: Bool = false
    ) -> FormPreset {
        var more: [String: SettingValue] = [
            "id": .text(FormSettings.IDRule.sizeName.rawValue), "probe.query": map(fields),
            "probe.status": .texts(probe),
        ]
        if inQuery { more["send.query"] = map(fields) }
        return FormPreset(
            name, block: 1 << 20, .merge, fields: fields, success: success, permanent: permanent, more)
    }

    private static let resumable = flowLike(
        "resumable", resumableFields("resumable").merging(["resumableType": "{mime}"]) { $1 },
        success: ["200", "201"], permanent: ["400", "401", "403", "404", "409", "415", "500", "501"],
        probe: ["200", "201"], inQuery: true)

    private static let flow = flowLike(
        "flow", resumableFields("flow"), success: ["200-202"], permanent: ["404", "413", "415", "500", "501"],
        probe: ["200-202"])

    private static let simpleUploader = flowLike(
        "simple-uploader", resumableFields(""), success: ["200-202"], permanent: ["404", "415", "500", "501"],
        probe: ["200-202"])

    private static let dropzone: FormPreset = {
        let fields = [
            "dzuuid": "{id}", "dzchunkindex": "{index0}", "dztotalfilesize": "{total}", "dzchunksize": "{block_size}",
            "dztotalchunkcount": "{count}", "dzchunkbyteoffset": "{offset}",
        ]
        return FormPreset(
            "dropzone", block: 2 << 20, fields: fields,
            ["headers": browser, "send.omit_when_single": .texts(fields.keys.sorted())])
    }()

    private static let fineUploader: FormPreset = {
        let ofParts = [
            "qqpartindex": "{index0}", "qqpartbyteoffset": "{offset}", "qqchunksize": "{length}",
            "qqtotalparts": "{count}",
        ]
        return FormPreset(
            "fineuploader", block: 2_000_000, part: "qqfile", filename: "blob",
            fields: ofParts.merging([
                "qquuid": "{id}", "qqfilename": "{name}", "qqtotalfilesize": "{total}", "qqresume": "true",
            ]) { $1 },
            success: ["200-204"],
            [
                "headers": browser, "send.omit_when_single": .texts(ofParts.keys.sorted()),
                "send.only_when_resumed": .texts(["qqresume"]),
                "success.json": .texts(["/success = true"]), "permanent.json": .texts(["/preventRetry = true"]),
                "restart.json": .texts(["/reset = true"]), "new_id": .text("/newUuid"),
            ])
    }()

    private static let plupload = FormPreset(
        "plupload", block: 1 << 20, filename: "blob",
        // On these servers only the name distinguishes one upload from another.
        fields: ["name": "{id}-{name}", "chunk": "{index0}", "chunks": "{count}"], success: ["200-399"],
        ["success.json": .texts(["/error absent"]), "repeat_safe": .flag(false)])

    private static let webUploader = FormPreset(
        "webuploader", block: 5 << 20,
        fields: [
            "id": "{id}", "name": "{name}", "type": "{mime}", "lastModifiedDate": "{mtime_ms}", "size": "{total}",
            "chunks": "{count}", "chunk": "{index0}",
        ], ["send.omit_when_single": .texts(["chunk", "chunks"])])

    private static let blueimp = FormPreset(
        "blueimp", block: 10 << 20, part: "files[]", fields: [:],
        [
            "send.headers": map([
                "Content-Range": "bytes {offset}-{last}/{total}",
                "Content-Disposition": "attachment; filename=\"{id}-{name:uri}\"",
            ]),
            "send.omit_when_single": .texts(["Content-Range"]), "probe.header": .text("Range"),
            // These servers append to the file with this name.
            "repeat_safe": .flag(false),
        ])
}
