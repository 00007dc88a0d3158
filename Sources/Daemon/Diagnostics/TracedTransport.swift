internal import API
internal import Core
internal import Destinations
internal import Digests
internal import Linux
internal import Transport

/// Sends the requests of one destination. Records them while a person follows them, and the last that failed always.
struct TracedTransport: Transporting {
    let transport: any Transporting
    let destination: String
    let traces: RequestTraces
    let clocks: any Clocks

    func send(_ request: Request) async throws(TransportError) -> Response {
        let (at, start) = (clocks.wall(), clocks.monotonic())
        do throws(TransportError) {
            let response = try await transport.send(request)
            await note(request, .success(response), at, since: start)
            return response
        } catch {
            await note(request, .failure(error), at, since: start)
            throw error
        }
    }

    private func note(
        _ request: Request, _ result: Result<Response, TransportError>, _ at: WallTime, since start: MonotonicTime
    ) async {
        if traces.isFollowed(destination) {
            // With the digest of its body, which costs reading it.
            traces.record(await entry(request, result, at, since: start, digests: true), of: destination)
        }
        if Self.isFailure(result) {
            traces.recordFailure(await entry(request, result, at, since: start, digests: false), of: destination)
        }
    }

    private static func isFailure(_ result: Result<Response, TransportError>) -> Bool {
        switch result {
        case .success(let response): response.status >= 400
        case .failure(let error): error.kind != .cancelled
        }
    }

    private func entry(
        _ request: Request, _ result: Result<Response, TransportError>, _ at: WallTime, since start: MonotonicTime,
        digests: Bool
    ) async -> TraceEntry {
        let time = clocks.monotonic().since(start).inMilliseconds
        var entry = TraceEntry(
            at: at.description, method: request.method, url: TraceMask.url(request.url), interface: request.interface,
            proxy: request.proxy?.place, headers: request.headers.map { TraceMask.line($0.0, $0.1, request.concealed) },
            body: digests ? await Self.body(request.body) : Self.extent(of: request.body), answer: nil, error: nil,
            sent: 0, wire: 0, milliseconds: time)
        switch result {
        case .success(let response):
            entry.answer = TraceEntry.Answer(
                status: response.status,
                headers: response.headers.lines.map {
                    TraceMask.line($0.name, $0.value, answering: request.url, request.concealed)
                },
                body: TraceEntry.Body(
                    bytes: request.onBody == nil ? Int64(response.body.count) : nil,
                    sha256: response.body.isEmpty ? nil : Self.digest(response.body)))
            (entry.sent, entry.wire) = (response.bytesSent, response.bytesOnWire)
        case .failure(let error):
            // Its details name hosts, ports, certificates and reasons of libcurl, and no value of a header.
            entry.error = "\(error.kind.rawValue): \(redacted(printable(request.concealed(error.detail))))"
            (entry.sent, entry.wire) = (error.bytesSent, error.bytesOnWire)
        }
        return entry
    }

    /// Without a digest.
    private static func extent(of body: Request.Body) -> TraceEntry.Body {
        switch body {
        case .file(_, let offset, _, _), .framed(_, _, let offset, _, _):
            TraceEntry.Body(bytes: body.count, offset: offset)
        default: TraceEntry.Body(bytes: body.count)
        }
    }

    private static func body(_ body: Request.Body) async -> TraceEntry.Body {
        switch body {
        case .none: return TraceEntry.Body(bytes: 0)
        case .bytes(let bytes): return TraceEntry.Body(bytes: Int64(bytes.count), sha256: digest(bytes))
        case .file(let place, let offset, let count, _), .framed(_, let place, let offset, let count, _):
            // The bytes may be gone by now: then only their place is known.
            let digest = try? await blocking { try digestOfPiece(.sha256, place, offset..<offset + count) }
            return TraceEntry.Body(bytes: body.count, offset: offset, sha256: digest.map { hexadecimal($0) })
        case .stream: return TraceEntry.Body(bytes: nil)
        }
    }

    private static func digest(_ bytes: [UInt8]) -> String { hexadecimal(Hasher.digest(.sha256, of: bytes)) }
}

/// Decides what of a request may be shown. A value is shown only if it is known to be no secret.
enum TraceMask {
    /// Headers whose values are numbers, times, types and names of protocols, in lower case.
    private static let plain: Set<String> = [
        "accept", "accept-encoding", "accept-ranges", "age", "allow", "cache-control", "connection", "content-encoding",
        "content-length", "content-md5", "content-range", "content-type", "date", "expect", "expires", "keep-alive",
        "last-modified", "range", "retry-after", "server", "transfer-encoding", "tus-checksum-algorithm",
        "tus-extension", "tus-max-size", "tus-resumable", "tus-version", "upload-checksum", "upload-complete",
        "upload-defer-length", "upload-draft-interop-version", "upload-expires", "upload-incomplete", "upload-length",
        "upload-limit", "upload-offset", "user-agent", "vary", "via", "x-http-method-override", "x-amz-content-sha256",
        "x-amz-date", "x-amz-request-id", "x-oss-request-id", "x-oss-hash-crc64ecma", "sluice-idempotent-creation",
        "sluice-lookup",
        "sluice-space-free", "strict-transport-security",
    ]

    /// `Name: value`, or the length of a value that may be secret.
    ///
    /// - Parameters:
    ///   - url: For a header of an answer, the address of its request.
    ///   - conceal: Returns a text without the secrets that are known: the server may repeat one in any header.
    static func line(
        _ name: String, _ value: String, answering url: String? = nil, _ conceal: (String) -> String = { $0 }
    ) -> String {
        let lower = name.lowercased()
        if plain.contains(lower) { return "\(printable(name)): \(printable(conceal(value)))" }
        let name = conceal(name)
        if lower == "location" {
            // As the request that goes there will name it.
            let target = url.map { WebAddress($0).resolving(value).description } ?? value
            return "\(printable(name)): \(Self.url(target))"
        }
        let count = value.utf8.count
        return "\(printable(name)): (\(count) \(count == 1 ? "byte" : "bytes"))"
    }

    /// The origin, and a short digest of the rest, by which the same address is recognised: the address of an upload
    /// gives a right to it, and a query may have a signature.
    static func url(_ text: String) -> String {
        let address = WebAddress(text)
        let mark = hexadecimal(Hasher.digest(.sha256, of: Array(text.utf8)).prefix(4))
        let origin = address.authority == nil ? "" : address.isOfPlainHost ? address.shownOrigin : "(an invalid host)"
        let hasRest = address.path.count > 1 || address.query != nil
        return "\(origin)/" + (hasRest ? "…#\(mark)" : "")
    }
}
