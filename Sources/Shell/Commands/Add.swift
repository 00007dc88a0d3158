internal import API
internal import Control
internal import Core
internal import Glibc
internal import Linux
internal import Transport

extension Verb {
    static let add: Verb = Verb(
        "add", "queue files, folders or standard input for upload", operands: "PATH...",
        usages: ["[OPTION...] PATH...", "--name NAME [OPTION...] -"], takes: .file, count: 1...10_000,
        details: [
            "A file must be below a watched folder; its name may be one that the folder does not accept. The settings "
                + "of that folder decide how the file is uploaded and what happens to its source. The upload waits for "
                + "its holds like any other. A file that was uploaded before is refused (status 65) unless --again is "
                + "given.",
            "If PATH is a folder, it adds every file in it and in its subfolders that the watched folder accepts by "
                + "name, ignore files, size and age, including files that existed before the folder was watched.",
            "If PATH is `-`, it reads standard input to its end, and adds it as a file with the name that --name "
                + "gives. When the command reports success, all bytes are on the disk. `./-` is a file of that name.",
        ],
        options: [
            Option(
                "to", "NAME", takes: .destinations, repeats: true,
                "upload to this destination (default: the destinations of the file's folder; `-` needs it unless only "
                    + "one destination is configured)"
            ),
            Option("name", "NAME", "with `-`: the name of the file (required)"),
            Option("key", "KEY", "your own name for it; no other ongoing upload of the destination has it"),
            Option(
                "context", "NAME=VALUE", repeats: true,
                "a value of your own that is stored with the upload, and shown with it"),
            Option(
                "header", "NAME: VALUE", repeats: true,
                "a quoted extra header for this upload's requests, sent to its destination's address only; its value "
                    + "is never shown"
            ),
            Option(
                "url", "URL",
                "create the upload at this address instead of the destination's; scheme, host and port must be the same"
            ),
            Option(
                "upload-url", "URL",
                "send the file to the upload that exists at this address, and create none; scheme, host and port must be "
                    + "those of the destination"
            ),
            Option(flag: "again", "upload files that were uploaded before, too"),
        ] + Option.client,
        examples: [
            ("sluice add /srv/camera/clip.mp4 --to archive", "Adds one file, for one destination."),
            (
                "sluice add *.mp4 --to archive --context trip=alps",
                "Adds many files, with a context that `sluice list --context` finds."
            ),
            ("sluice add /srv/camera/2025 --to archive", "Adds every file in a folder."),
            ("ffmpeg -i cam -f mpegts - | sluice add - --name clip.ts --to archive", "Adds the output of a program."),
        ]
    ) { call in
        let context = try readContext(call.arguments.texts("context"), .add)
        let headers = try readHeaders(call.arguments.texts("header"))
        let paths = call.arguments.operands
        if call.arguments.has("key") && paths.count > 1 {
            throw Arguments.usage("--key names one upload, and there are \(paths.count) files", .add)
        }
        if call.arguments.has("upload-url") && paths.count > 1 {
            throw Arguments.usage("--upload-url is the address of one upload, and there are \(paths.count) files", .add)
        }
        if call.arguments.has("upload-url") && call.arguments.has("url") {
            throw Arguments.usage(
                "--url creates an upload, and --upload-url is of one that exists: give one of them", .add)
        }
        if paths.contains("-") { return try await sendStandardInput(call, context, headers) }
        if call.arguments.has("name") { throw Arguments.usage("--name is for `-`; a file has its own name", .add) }
        return try await call.withClient { client in
            var status = ExitCode.ok
            for path in paths {
                let request = AddRequest(
                    path: hexadecimal(try absolute(path).bytes), to: call.arguments.texts("to"),
                    key: call.arguments.text("key"), context: context, headers: headers,
                    url: call.arguments.text("url"), uploadURL: call.arguments.text("upload-url"),
                    again: call.arguments.has("again"))
                do {
                    let reply = try await client.add(request)
                    let file = try? FileStatus(at: FilePath(bytes: bytes(hexadecimal: request.path) ?? []))
                    if file?.isDirectory == true {
                        if try !printAdded(reply, of: path, call), status == .ok { status = .conflict }
                    } else {
                        try report("added", reply, call)
                    }
                } catch let refusal as Refusal {
                    // A refused file does not stop the others; the exit status is that of the first refusal.
                    let about = refusal.message.contains(path.display) ? "" : "\(path.display): "
                    call.console.error("sluice add: \(about)\(refusal.message)")
                    if status == .ok { status = ExitCode(refusal.code) }
                }
            }
            return status
        }
    }
}

/// Adds standard input as a file.
private func sendStandardInput(
    _ call: Invocation, _ context: [String: String], _ headers: [String: String]
) async throws -> ExitCode {
    guard call.arguments.operands.count == 1 else {
        throw Arguments.usage(
            "`-` is standard input, and must be the only argument; `./-` is a file of that name", .add)
    }
    guard let name = call.arguments.path("name") else {
        throw Arguments.usage("--name is missing: standard input has no name of its own", .add)
    }
    guard let text = name.text else {
        throw Arguments.usage("--name takes UTF-8, not `\(name.display)`", .add)
    }
    if call.arguments.has("again") { throw Arguments.usage("--again is for files; standard input is always new", .add) }
    let input = ByteStream.standardInput
    if let obstacle = input.obstacle { throw Arguments.usage("standard input \(obstacle)", .add) }
    let request = ReceiveRequest(
        name: text, to: call.arguments.texts("to"), key: call.arguments.text("key"), context: context, headers: headers,
        url: call.arguments.text("url"), uploadURL: call.arguments.text("upload-url"))
    return try await call.withClient { client in
        do {
            try report("added", try await client.receive(request, from: input), call)
            return .ok
        } catch let refusal as Refusal {
            throw CommandError(ExitCode(refusal.code), "sluice add: nothing was added: \(refusal.message)")
        } catch let error as TransportError {
            throw CommandError(.failed, "sluice add: nothing was added: \(error.detail)")
        } catch let error as ControlError {
            throw CommandError(
                ExitCode(error), "sluice add: \(error.description)",
                remedy: "\(error.isOver(before: input)) \(error.remedy)")
        }
    }
}

extension ControlError {
    /// A sentence on whether bytes that were not acknowledged were taken.
    fileprivate func isOver(before input: ByteStream) -> String {
        switch self {
        case .notRunning, .denied: return "Nothing was added."
        case .ended, .protocolFault:
            // Nothing is left to read, or it is unknown: the last bytes may have gone before it ended.
            return input.hasMore
                ? "Nothing was added: it ended before the last byte."
                : "It is not known whether it was added: see `sluice list`."
        }
    }
}

/// Prints the result for a folder: numbers, since there may be very many files.
///
/// - Returns: Whether anything was added.
private func printAdded(_ reply: UploadsReply, of path: FilePath, _ call: Invocation) throws -> Bool {
    if call.json {
        try call.printJSON(reply)
    } else {
        try call.console.line("added \(reply.count) upload\(reply.count == 1 ? "" : "s") of \(path.display)")
        if let refused = reply.refused, let refusal = reply.refusal {
            try call.console.line("\(refused) could not be added, the first because \(refusal)")
        }
    }
    return reply.count > 0
}

/// Messages contain no header values: those may be secrets.
private func readHeaders(_ written: [String]) throws -> [String: String] {
    var headers: [String: String] = [:]
    for (number, line) in written.enumerated() {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(" ") else {
            throw Arguments.usage("--header takes 'Name: value'; number \(number + 1) has another form", .add)
        }
        let value = String(String(parts[1].drop { $0 == " " }).reversed().drop { $0 == " " }.reversed())
        guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
            throw Arguments.usage(
                "--header takes printable ASCII; the value of `\(printable(String(parts[0])))` is not", .add)
        }
        guard headers.updateValue(value, forKey: String(parts[0])) == nil else {
            throw Arguments.usage("--header names `\(printable(String(parts[0])))` twice", .add)
        }
    }
    return headers
}

func readContext(_ written: [String], _ verb: Verb) throws -> [String: String] {
    var context: [String: String] = [:]
    for pair in written {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw Arguments.usage("--context takes NAME=VALUE, not `\(printable(pair))`", verb)
        }
        guard context.updateValue(String(parts[1]), forKey: String(parts[0])) == nil else {
            throw Arguments.usage("--context names `\(printable(String(parts[0])))` twice", verb)
        }
    }
    return context
}

/// `path` as an absolute path: the daemon's current folder differs from the person's.
func absolute(_ path: FilePath) throws -> FilePath {
    if path.isAbsolute { return path.normalised }
    guard let current = getcwd(nil, 0) else {
        throw CommandError(.failed, "the current folder has no path: \(String(cString: strerror(errno)))")
    }
    defer { free(current) }
    return FilePath(bytes: UnsafeRawBufferPointer(start: current, count: strlen(current))).appending(path).normalised
}
