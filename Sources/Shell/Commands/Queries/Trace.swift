internal import API
internal import Config
internal import Control
internal import Core
internal import Glibc
internal import Linux

extension Verb {
    static let trace: Verb = Verb(
        "trace", "record the requests to a destination, and their answers", operands: "DESTINATION",
        takes: .destinations, count: 1...1,
        details: [
            "The running daemon records each request to the destination, with the answer: method, host, headers, status, "
                + "times and bytes. Bodies are given by length and SHA-256. Values of headers that may be secret, and the "
                + "paths of addresses, are given by their length or a short digest.",
            "Writes one JSON object in each line, to standard output or to a new file that only you can read. It sends "
                + "nothing itself: start it, then wait for uploads, or run `sluice check --running`.",
            "It ends after the time of --for, when the output has the size of --max, or on Ctrl-C.",
        ],
        options: [
            Option("for", "DURATION", "how long; 10m by default, 1d at most"),
            Option("max", "SIZE", "how much is written at most; 20MB by default"),
            Option("output", "FILE", takes: .file, "a new file instead of standard output (or -o FILE)"),
        ] + Option.client,
        examples: [
            ("sluice trace nas --for 10m --max 20MB -o nas.trace", "Records the requests of ten minutes in a file.")
        ]
    ) { call in try await followRequests(call) }
}

/// How often the daemon is asked for more.
private let interval: Duration = .milliseconds(500)

private func followRequests(_ call: Invocation) async throws -> ExitCode {
    let name = call.arguments.operands.first?.lossyText ?? ""
    var seconds: Int64 = 600
    if let written = call.arguments.text("for") {
        guard let given = Units.seconds(written), (1...86_400).contains(given) else {
            throw Arguments.usage(
                "--for takes a length of time like 10m, at most 1d, not `\(printable(written))`", .trace)
        }
        seconds = given
    }
    var most: Int64 = 20_000_000
    if let written = call.arguments.text("max") {
        guard let given = readBytes(written), given > 0 else {
            throw Arguments.usage("--max takes an amount like 20MB, not `\(printable(written))`", .trace)
        }
        most = given
    }
    let output = TraceOutput(call.arguments.path("output"), call.console)
    try output.refuseExisting()
    return try await call.withClient { client in
        var reply = try await client.trace(name, TraceRequest(seconds: seconds))
        // Only now: a refused command leaves no file that stops the corrected one.
        try output.create()
        var (written, count): (Int64, Int) = (0, 0)
        while true {
            for entry in reply.entries {
                let line = try JSON.bytes(entry) + [UInt8(ascii: "\n")]
                written += Int64(line.count)
                if written > most { return try output.end(count, reply.dropped, isFull: true) }
                try output.write(line)
                count += 1
            }
            if reply.ended { return try output.end(count, reply.dropped, isFull: false) }
            try await Alarms.shared.sleep(for: interval)
            do { reply = try await client.trace(name, TraceRequest(after: reply.next)) } catch {
                // The daemon has stopped: what it had recorded before is written.
                _ = try output.end(count, reply.dropped, isFull: false)
                throw error
            }
        }
    }
}

/// Where the lines of a trace go.
private struct TraceOutput {
    private let console: Console
    private let file: NewFile?

    init(_ path: FilePath?, _ console: Console) {
        self.console = console
        file = path.map { NewFile($0) }
    }

    func refuseExisting() throws { try file?.refuseExisting() }
    func create() throws { try file?.create() }

    func write(_ line: [UInt8]) throws {
        guard let file else { return try console.raw(String(decoding: line, as: UTF8.self)) }
        try file.append(line)
    }

    func end(_ count: Int, _ dropped: Int, isFull: Bool) throws -> ExitCode {
        console.error(
            "\(count) \(count == 1 ? "request" : "requests") recorded"
                + (dropped > 0 ? ", \(dropped) dropped because they came too fast" : "")
                + (isFull ? "; it ended at --max" : ""))
        return .ok
    }
}
