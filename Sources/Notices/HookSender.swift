package import Core
package import Credentials
package import Linux
internal import Synchronization
package import Transport

/// The way of one notice to its hook.
package enum HookDelivery: Sendable {
    /// The program and its arguments; and the part of the network that it gets, where it is held to one.
    case command([String], over: ProgramNetwork? = nil)
    /// With the permission for its request.
    case web(WebHook, any RequestPermit)
}

/// Delivers notices, each with one try. Errors are described without secrets.
package struct HookSender: Sendable {
    private let transport: PermittedTransport
    private let secrets: SecretReader
    private let clocks: any Clocks
    private let protocols = ProtocolCache()

    package init(transport: PermittedTransport, secrets: SecretReader, clocks: any Clocks) {
        self.transport = transport
        self.secrets = secrets
        self.clocks = clocks
    }

    package func deliver(_ notice: Notice, by delivery: HookDelivery, within limit: Duration) async -> DeliveryResult {
        switch delivery {
        case .command(let words, let network): await run(words, over: network, notice, within: limit)
        case .web(let web, let permit): await post(notice, web, permit, within: limit)
        }
    }

    /// Checks whether everything that a hook needs can be read and run; `nil`, or the problem. It sends nothing, and
    /// starts only the commands of secrets.
    package func obstacle(of hook: Hook) async -> String? {
        let web: WebHook
        switch hook.target {
        case .command(let command):
            return await Self.obstacle(running: command.words)
        case .web(let target): web = target
        }
        do { _ = try await headers(of: web, Notice(id: "check", body: [])) } catch { return "\(error)" }
        return nil
    }

    /// Why a command cannot be run, as far as that can be found out without running it; `nil` when it can.
    package static func obstacle(running words: [String]) async -> String? {
        let path = FilePath(words.first ?? "")
        var problem: String?
        do {
            problem = try await blocking {
                // Many programs are links: `/bin/sh`, `/usr/bin/python3`.
                let status = try FileStatus(at: Files.real(path) ?? path)
                if !status.isRegular { return "it is not a program" }
                return status.mode & 0o111 == 0 ? "it is not executable; chmod +x it" : nil
            }
        } catch { problem = (error as? SystemError)?.reason ?? "\(error)" }
        return problem.map { "\(path.display) cannot be run: \($0)" }
    }

    // MARK: Commands

    private func run(
        _ words: [String], over network: ProgramNetwork?, _ notice: Notice, within limit: Duration
    ) async -> DeliveryResult {
        let stop = StopFlag()
        let program = Program(
            words: words.map { Array($0.utf8) }, environment: Program.plainEnvironment + (network?.environment ?? []),
            folder: "/", input: notice.body, confinement: network?.confinement)
        let result: Program.Result
        do {
            result = try await withTaskCancellationHandler {
                try await blocking {
                    try program.run(within: limit, line: { _, _ in }, isStopped: { stop.isSet })
                }
            } onCancel: {
                stop.set()
            }
        } catch {
            return .retry(
                "it cannot be started: \((error as? SystemError)?.reason ?? "\(error)")", because: .notStarted,
                after: nil)
        }
        let said = lastWords(network?.cover(result.errorOutput) ?? result.errorOutput)
        switch result.ending {
        case .status(0): return .delivered("it ended with exit status 0")
        case .status(let status):
            return .retry("it ended with exit status \(status)\(said)", because: .exitStatus(status), after: nil)
        case .signal(let signal):
            return .retry("it was ended by signal \(signal)\(said)", because: .signal(signal), after: nil)
        case .overdue:
            return .retry("it did not end within its `timeout` and was stopped\(said)", because: .timeout, after: nil)
        case .stopped: return .stopped
        }
    }

    /// The last line of its standard error, in which a program usually says what it lacks.
    private func lastWords(_ complaint: String) -> String {
        // Before it is divided: of a key over several lines the last one alone does not look like a secret.
        let covered = redacted(secrets.known.cover(complaint))
        guard let line = covered.split(whereSeparator: \.isNewline).last else { return "" }
        return ": " + redacted(printable(String(line.prefix(200))))
    }

    // MARK: Addresses

    private func post(
        _ notice: Notice, _ web: WebHook, _ permit: any RequestPermit, within limit: Duration
    ) async -> DeliveryResult {
        let headers: [(String, String)]
        do { headers = try await self.headers(of: web, notice) } catch {
            return .retry("\(error)", because: .secret, after: nil)
        }
        var request = Request("POST", web.url, headers: headers, body: .bytes(notice.body))
        request.caFile = web.caFile
        request.limits = Limits(
            connect: min(limit, .seconds(30)), sendingStall: limit, replyWait: limit, whole: limit)
        // The answer may be long, and received bytes cost.
        (request.needsStatusOnly, request.answerLimit) = (true, 16 << 10)
        let response: Response
        let protocolProbe = protocols.of(WebAddress(web.url).origin)
        do { response = try await transport.send(request, with: permit) } catch {
            if error.kind == .cancelled, Task.isCancelled { return .stopped }
            if let speech = await protocolProbe.protocolMismatch(error, request, over: transport, with: permit) {
                return mistaken(speech, web, detail: covered(error.detail, headers))
            }
            return .retry(
                "\(web.shown): \(covered(error.detail, headers))", because: .transport(error.kind), after: nil)
        }
        if response.status == 400, await protocolProbe.requiresTLS(response, request, over: transport, with: permit) {
            return mistaken(.tls, web)
        }
        protocolProbe.recordAnswer()
        let answer = "\(web.shown) answered \(response.status)"
        if let proxy = response.possibleProxy {
            return .retry(
                "\(answer), or the proxy \(proxy.place) did: it may require a user and a password; \(proxy.credentialsHint)",
                because: .answer(response.status), after: nil)
        }
        if let proxy = response.plainProxy, response.isOfProxy {
            return .retry(
                "the proxy \(proxy.place), as \(proxy.setting) says, answered \(response.status) in place of "
                    + web.shown,
                because: .answer(response.status), after: retryAfter(response.headers, now: clocks.wall()))
        }
        switch response.status {
        case 200..<300: return .delivered(answer)
        case 408, 425, 429, 500...:
            return .retry(
                answer, because: .answer(response.status), after: retryAfter(response.headers, now: clocks.wall()))
        case 300..<400:
            // Perhaps a portal's redirect, which is gone tomorrow.
            return .retry(answer + ", a redirect, which is not followed", because: .answer(response.status), after: nil)
        default: return .refused(answer)
        }
    }

    /// The server speaks another protocol than its address says: a person corrects the address, and the notice waits.
    private func mistaken(
        _ speech: ProtocolProbe.WireProtocol, _ web: WebHook, detail: String? = nil
    ) -> DeliveryResult {
        .retry("\(web.shown): \(speech.mistake(detail))", because: .wireProtocol(speech), after: nil)
    }

    /// - Throws: Why a secret cannot be used, as a text without the secret.
    private func headers(of web: WebHook, _ notice: Notice) async throws -> [(String, String)] {
        let moment = clocks.wall().milliseconds / 1000
        var headers = [
            ("Content-Type", "application/json"), ("Webhook-Id", notice.id), ("Webhook-Timestamp", "\(moment)"),
        ]
        if let secret = web.secret {
            let signature = try Signature(secret: try await secrets.read(secret).reveal())
            headers.append(("Webhook-Signature", signature.of(id: notice.id, moment: moment, body: notice.body)))
        }
        for (name, source) in web.headers.sorted(by: { $0.key < $1.key }) {
            headers.append((name, try await secrets.read(source).reveal()))
        }
        return headers
    }

    /// Removes the values of headers, in case a library repeats one.
    private func covered(_ text: String, _ headers: [(String, String)]) -> String {
        let bytes = headers.map(\.1.utf8).filter { $0.count >= 8 }.reduce(Array(text.utf8)) {
            $0.replacing($1, with: "***".utf8)
        }
        return redacted(printable(String(decoding: bytes, as: UTF8.self)))
    }
}

/// Facts about the protocol of each server, by its origin.
private final class ProtocolCache: Sendable {
    private let known = Mutex<[String: ProtocolProbe]>([:])

    func of(_ origin: String) -> ProtocolProbe {
        known.withLock { known in
            if let protocolProbe = known[origin] { return protocolProbe }
            let protocolProbe = ProtocolProbe()
            known[origin] = protocolProbe
            return protocolProbe
        }
    }
}
