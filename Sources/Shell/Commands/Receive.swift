internal import Core
internal import Credentials
internal import Linux
internal import Receiver
internal import WebServer

extension Verb {
    static let receive: Verb = Verb(
        "receive", "receive uploads: a tus server that stores files in a folder",
        details: [
            "A file appears in the folder under the sender's name when it is complete and on the disk. It never "
                + "overwrites a file, and acknowledged bytes survive a power cut. It runs until SIGTERM or Ctrl-C, "
                + "and prints `listening on URL` on standard output when it is ready.",
            "It speaks plain HTTP: for senders on other machines, put a TLS proxy in front of it, and use "
                + "--token-file.",
        ],
        options: [
            Option(
                "into", "DIR", takes: .directory, required: true, "where files appear; created if it is missing"),
            Option(
                "listen", "ADDRESS", "HOST:PORT or :PORT (default: 127.0.0.1:1080); port 0 lets the system choose"),
            Option(
                "token-file", "FILE", takes: .file,
                "accept only senders with the token in this file (Authorization: Bearer)"),
            Option(
                "trusted-proxy", "ADDRESS", repeats: true,
                "trust X-Forwarded-For from this proxy or network: 127.0.0.1, 10.0.0.0/8"),
            Option("max-size", "SIZE", "refuse larger files: 20 GB, 500 MiB"),
            .ignoredConfig, .logLevel, .logFormat,
        ],
        examples: [
            ("sluice receive --into /srv/incoming", "Receives from this machine."),
            (
                "sluice receive --into /srv/incoming --listen :1080 --token-file /etc/sluice/receive.token",
                "Receives from senders on the network that have the token."
            ),
        ]
    ) { call in
        let arguments = call.arguments
        let log = try Log(arguments, .receive)
        guard let into = arguments.path("into") else { return .usage }
        let address = try listenAddress(arguments.text("listen") ?? "127.0.0.1:1080")
        let limit = try arguments.text("max-size").map(readSize)
        let openFiles = Machine.openFileLimit.now
        let limits = ConnectionLimits(
            connections: ConnectionLimits.connections(openFiles: openFiles),
            trustedProxies: try arguments.texts("trusted-proxy").map(readProxy))
        let token = try await readToken(arguments.path("token-file"), log)
        let receiver: Receiver
        do {
            receiver = try await Receiver.start(
                into: try absolute(into), listen: .tcp(host: address.host, port: address.port), token: token,
                maxSize: limit, limits: limits, log: { log.info($0) })
        } catch { throw receiverError(error) }
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        let isOpen = token == nil && !["127.0.0.1", "::1", "localhost"].contains(address.host)
        if let complaint = token.flatMap({ complaint(aboutToken: $0) }) { log.warning(complaint) }
        if receiver.awaitsAddress { log.warning(absentAddress, ["listen": host]) }
        if isOpen { log.warning("any client that reaches this address may upload; use --token-file", ["listen": host]) }
        if limits.connections < ConnectionLimits().connections {
            log.notice(
                "fewer connections than usual: this process may have few open files",
                ["connections": "\(limits.connections)", "open_files": "\(openFiles)"])
        }
        MemoryTrimmer.scheduleTrim()
        // The program that reads the output may have closed it; that is no reason to stop.
        try? call.console.line("listening on http://\(host):\(receiver.port)/files/")
        Notify().ready(receiver.awaitsAddress ? absentAddress : "listening on \(host):\(receiver.port)")
        await untilStopped(call, log)
        await receiver.stop()
        log.notice("stopped")
        return .ok
    }
}

private func receiverError(_ error: any Error) -> CommandError {
    guard let error = error as? SystemError else { return CommandError(.config, redacted(printable("\(error)"))) }
    // A full disk may have space in a minute, so the service must try again.
    return error.isFull
        ? CommandError(.notNow, "\(error)", remedy: "Free space on the disk of that folder.")
        : CommandError(.config, "\(error)", remedy: "Name a folder that this user may write to.")
}

private func untilStopped(_ call: Invocation, _ log: Log) async {
    guard let signals = call.signals else { return }
    exitAfterTimeout(signals, within: .seconds(10), .ok, log)
    for await signal in signals.stream where signal != .hangUp {
        log.notice("stopping", ["signal": "\(signal)"])
        return
    }
}

/// `host:port`, `[::1]:port` or `:port`, which means every address of this machine.
func listenAddress(_ text: String) throws -> ListenAddress {
    do throws(ListenAddress.ParseError) { return try ListenAddress(text) } catch {
        let problem = error.text ?? "takes HOST:PORT or :PORT, not `\(text)`"
        throw Arguments.usage("--listen \(printable(problem))", .receive)
    }
}

private func readSize(_ text: String) throws -> Int64 {
    guard let bytes = byteCount(in: text), bytes > 0 else {
        throw Arguments.usage("--max-size takes a size like `20 GB` or `500 MiB`, not `\(printable(text))`", .receive)
    }
    return bytes
}

private func readProxy(_ text: String) throws -> IPSubnet {
    guard let subnet = IPSubnet(text) else {
        throw Arguments.usage(
            "--trusted-proxy takes an address or a network like `10.0.0.0/8`, not `\(printable(text))`", .receive)
    }
    return subnet
}

/// The token in a file, or `nil` if no file is named.
private func readToken(_ file: FilePath?, _ log: Log) async throws -> [UInt8]? {
    guard let file else { return nil }
    let token: Secret
    do {
        token = try await SecretReader().read(.file(file))
    } catch {
        throw CommandError(.config, "\(error)")
    }
    // Secrets are often links to the current version of a file. systemd gives its credentials to a group too.
    if let status = try? FileStatus(at: Files.real(file) ?? file), status.mode & 0o004 != 0 {
        log.warning("the token can be read by others; chmod 600 it", ["file": file.display])
    }
    return Array(token.reveal().utf8)
}
