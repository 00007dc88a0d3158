internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import WebServer

/// The tus protocol 1.0.0: core, `creation`, `creation-with-upload` and `termination`
/// (https://tus.io/protocols/resumable-upload).
///
/// | request                | reply                                                                  |
/// |------------------------|------------------------------------------------------------------------|
/// | OPTIONS                | 204, the supported extensions, and the free space                      |
/// | POST `/files/`         | 201 and `Location`, with bytes `Upload-Offset` too; twice with the same `sluiceId`: the same `Location` |
/// | HEAD `/files/`         | our own: 200 when the content named by `Upload-Length` and `Upload-Metadata` is held, else 404 |
/// | HEAD                   | 200 and the offset, below which everything is on the disk              |
/// | PATCH                  | 204; 409 other offset, 413 too long, 423 interrupted, 460 wrong digest, 503 all bytes there and not finished, 507 full |
/// | DELETE                 | 204; removes a finished upload's file too, if it is still the same    |
final class TusService: WebService {
    private static let version = ("Tus-Resumable", "1.0.0")

    /// Announces that a HEAD of the endpoint is answered, and marks those answers.
    private static let lookup = "Sluice-Lookup"

    /// Announces that a creation with a known `sluiceId` is answered with the upload that has it.
    private static let idempotentCreation = ("Sluice-Idempotent-Creation", "1")

    /// Size of the largest upload for which there is space now.
    private static let spaceFree = "Sluice-Space-Free"

    private let directory: UploadDirectory
    private let token: [UInt8]?
    private let maxSize: Int64?
    private let clocks: any Clocks
    private let refusedClients = RefusedClientLog()
    /// Bodies that are being received, by the number of their request.
    private let incoming = Mutex<[UInt64: UploadBodyWriter]>([:])

    init(directory: UploadDirectory, token: [UInt8]?, maxSize: Int64?, clocks: any Clocks) {
        self.clocks = clocks
        self.directory = directory
        self.token = token
        self.maxSize = maxSize
    }

    // MARK: Head

    func denial(of request: WebRequest) -> WebDenial? {
        guard let token else { return nil }
        let given = request.bearer
        if let given, isSameSecret(given, token) { return nil }
        let words = "refused \(shown(request)): \(given == nil ? "no token" : "wrong token")"
        if let line = refusedClients.line(words, at: clocks.monotonic()) { directory.log(line) }
        let reply = textReply(401, "this receiver needs a token", [("WWW-Authenticate", "Bearer realm=\"sluice\"")])
        return WebDenial(reply, delay: given == nil ? .zero : WebDenial.wrongToken)
    }

    func plan(_ request: WebRequest) -> BodyPlan {
        if let refusal = refusal(of: request) { return .refuse(refusal) }
        do throws(RefusalError) {
            if method(of: request) == "PATCH" { return .sink(try begin(request)) }
            if method(of: request) == "POST", request.headers["content-type"] == CreationRequest.bytesType {
                return .sink(try beginCreation(request))
            }
            return .collect(limit: 64 << 10)
        } catch { return .refuse(error.reply) }
    }

    private struct RefusalError: Error { let reply: WebReply }

    private func refusal(of request: WebRequest) -> WebReply? {
        let method = method(of: request)
        let target = target(of: request)
        guard target != .unknown else { return textReply(404, "there is nothing here; uploads are created at /files/") }
        if method == "OPTIONS" { return nil }
        let allowed = target == .endpoint ? ["POST", "HEAD"] : ["HEAD", "PATCH", "DELETE"]
        guard allowed.contains(method) else {
            return textReply(
                405,
                "\(target == .endpoint ? "this address" : "an upload") takes only \(allowed.joined(separator: ", "))",
                [("Allow", (allowed + ["OPTIONS"]).joined(separator: ", "))])
        }
        guard request.headers["tus-resumable"] == Self.version.1 else {
            return textReply(412, "only version 1.0.0 of the tus protocol is supported", [("Tus-Version", "1.0.0")])
        }
        return nil
    }

    private enum Target: Hashable { case endpoint, upload(String), unknown }

    private func target(of request: WebRequest) -> Target {
        if request.path == "/files" || request.path == "/files/" { return .endpoint }
        guard request.path.hasPrefix("/files/") else { return .unknown }
        let id = request.path.dropFirst(7)
        return id.utf8.count == 32 && bytes(hexadecimal: String(id)) != nil ? .upload(id.lowercased()) : .unknown
    }

    private func method(of request: WebRequest) -> String {
        // The header is for clients whose network blocks PATCH and DELETE; they can always POST.
        guard request.method == "POST", let method = request.headers["x-http-method-override"] else {
            return request.method
        }
        return method.uppercased()
    }

    private func begin(_ request: WebRequest) throws(RefusalError) -> UploadBodyWriter {
        func refusal(_ status: Int, _ text: String, _ headers: [(String, String)] = []) -> RefusalError {
            RefusalError(reply: textReply(status, text, headers))
        }
        guard request.headers["content-type"] == CreationRequest.bytesType else {
            throw refusal(415, "the Content-Type of a PATCH is \(CreationRequest.bytesType)")
        }
        guard let offset = wholeNumber(request.headers["upload-offset"]) else {
            throw refusal(400, "Upload-Offset is missing or not a number")
        }
        guard case .upload(let id) = target(of: request), let arrival = directory.find(id) else {
            throw refusal(404, "there is no such upload")
        }
        let length = request.headers["content-length"].flatMap { Int64($0) } ?? 0
        // Bytes that do not fit are refused before the right to write changes.
        guard length <= max(0, arrival.length - offset) || offset > arrival.length else {
            throw refusal(413, "the upload has \(arrival.length) bytes, and \(length) from \(offset) on exceed them")
        }
        let sink: UploadBodyWriter
        do {
            sink = try writer(.patch, of: arrival, request)
        } catch { throw RefusalError(reply: failed(error, request)) }
        guard arrival.beginWriting(request.number, at: offset) != nil else {
            throw refusal(
                409, "the offset of the upload is not \(offset); ask for it with HEAD",
                [("Upload-Offset", String(arrival.nextOffset))])
        }
        incoming.withLock { $0[request.number] = sink }
        return sink
    }

    private func beginCreation(_ request: WebRequest) throws(RefusalError) -> UploadBodyWriter {
        do {
            let creation = try CreationRequest(request, maxSize: maxSize)
            try Creation.requireSpace(for: creation.length, on: directory)
            let sink = try writer(.creation, of: directory.newUpload(creation), request)
            incoming.withLock { $0[request.number] = sink }
            return sink
        } catch let refusal as CreationRequest.RefusedError {
            throw RefusalError(reply: reply(to: refusal, request))
        } catch { throw RefusalError(reply: failed(error, request)) }
    }

    private func writer(
        _ kind: UploadBodyWriter.Request, of arrival: IncomingUpload, _ request: WebRequest
    ) throws(SystemError) -> UploadBodyWriter {
        try UploadBodyWriter(kind, of: arrival, on: directory, number: request.number) { [weak self] in
            self?.incoming.withLock { _ = $0.removeValue(forKey: request.number) }
        }
    }

    // MARK: Reply

    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        do {
            switch (method(of: request), target(of: request)) {
            case ("OPTIONS", _): return await options()
            case ("POST", .endpoint): return try await create(request)
            case ("HEAD", .endpoint): return try await lookUp(request)
            case ("HEAD", .upload(let id)): return try await uploadStatus(id)
            case ("PATCH", .upload): return try await patch(request)
            case ("DELETE", .upload(let id)): return try await delete(id)
            default: return textReply(404, "there is nothing here")
            }
        } catch { return failed(error, request) }
    }

    private func options() async -> WebReply {
        let directory = directory
        // If the disk does not tell, the uploads report its problem.
        let space = try? await blocking { try Creation.space(for: directory) }
        var headers = [
            Self.version, ("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,creation-with-upload,termination"),
            (Self.lookup, "1"), Self.idempotentCreation,
        ]
        if let maxSize { headers.append(("Tus-Max-Size", String(maxSize))) }
        if let space { headers.append((Self.spaceFree, String(max(0, space.bytes)))) }
        return WebReply(status: 204, headers: headers)
    }

    private func create(_ request: WebRequest) async throws -> WebReply {
        let body = incoming.withLock { $0.removeValue(forKey: request.number) }
        let directory = directory
        do {
            let (arrival, offset) = try await blocking { [maxSize] () throws -> (IncomingUpload, Int64) in
                do {
                    let creation = try CreationRequest(request, maxSize: maxSize)
                    if body?.outcome == .tooLong {
                        throw CreationRequest.RefusedError(413, "the body is longer than the upload", isLogged: true)
                    }
                    return try Creation(creation, directory, body).run()
                } catch {
                    body.map { if directory.find($0.arrival.id) == nil { $0.discard() } }
                    throw error
                }
            }
            var headers = [Self.version, ("Location", "/files/\(arrival.id)")]
            if offset > 0 || body != nil { headers.append(("Upload-Offset", String(offset))) }
            return WebReply(status: 201, headers: headers)
        } catch is UploadDirectory.BusyError {
            return textReply(503, "this upload is being created by another request", [("Retry-After", "1")])
        } catch let refusal as CreationRequest.RefusedError {
            return reply(to: refusal, request)
        }
    }

    private func reply(to refusal: CreationRequest.RefusedError, _ request: WebRequest) -> WebReply {
        refusal.isLogged ? refused(request, refusal.status, refusal.text) : textReply(refusal.status, refusal.text)
    }

    /// Whether the folder contains this content under this name, according to the disk.
    private func lookUp(_ request: WebRequest) async throws -> WebReply {
        guard let length = wholeNumber(request.headers["upload-length"]),
            let metadata = UploadMetadataHeader(header: request.headers["upload-metadata"] ?? ""),
            let digest = metadata.text("sha256")?.lowercased(), digest.utf8.count == 64
        else { return textReply(400, "a lookup takes Upload-Length, and Upload-Metadata with a name and sha256") }
        let requestedPath: FilePath
        do { requestedPath = try FinalName.path(from: metadata) } catch { return refused(request, 400, error.text) }
        let directory = directory
        let held = try await blocking {
            try Lookup(directory: directory).find(requestedPath, length: length, digest: digest)
        }
        return WebReply(
            status: held == nil ? 404 : 200,
            headers: [Self.version, (Self.lookup, held == nil ? "absent" : "held"), ("Cache-Control", "no-store")])
    }

    private func uploadStatus(_ id: String) async throws -> WebReply {
        guard let arrival = directory.find(id) else { return textReply(404, "there is no such upload") }
        arrival.interrupt()
        let directory = directory
        let reception = try await blocking { try arrival.commit(on: directory) }
        var headers = [Self.version, ("Cache-Control", "no-store"), ("Upload-Length", String(arrival.length))]
        if !arrival.metadata.header.isEmpty { headers.append(("Upload-Metadata", arrival.metadata.header)) }
        switch reception {
        case .partial(let offset): headers.append(("Upload-Offset", String(offset)))
        case .finished: headers.append(("Upload-Offset", String(arrival.length)))
        case .refused(let why):
            directory.log("refused \(arrival.requestedPath.display): \(why)")
            headers.append(("Upload-Offset", "0"))
        case .gone: return textReply(404, "there is no such upload")
        }
        return WebReply(status: 200, headers: headers)
    }

    private func patch(_ request: WebRequest) async throws -> WebReply {
        guard let sink = incoming.withLock({ $0.removeValue(forKey: request.number) }) else {
            return textReply(500, "the body was lost")
        }
        let (directory, arrival) = (directory, sink.arrival)
        if sink.outcome == .interrupted { return textReply(423, "a newer request has taken over this upload") }
        let reception: IncomingUpload.ReceptionState
        do { reception = try await blocking { try arrival.commit(on: directory) } } catch {
            guard sink.outcome == .stored, arrival.hasAllBytes else { throw error }
            // A 507 or 500 here would read as a refusal of the file. This is no verdict: a HEAD tries again and reports
            // it.
            directory.log("failed to finish \(shown(request)): \(error)")
            return textReply(503, "every byte is here, but the upload could not be finished", [("Retry-After", "1")])
        }
        switch sink.outcome {
        case .tooLong: return refused(request, 413, "the body is longer than the rest of the upload")
        case .failed(let error): return failed(error, request)
        case .stored, .interrupted: break
        }
        switch reception {
        case .partial(let offset):
            return WebReply(status: 204, headers: [Self.version, ("Upload-Offset", String(offset))])
        case .finished:
            return WebReply(status: 204, headers: [Self.version, ("Upload-Offset", String(arrival.length))])
        // tus 1.0, section "Checksum": 460 is a mismatch.
        case .refused(let why): return refused(request, 460, why)
        case .gone: return textReply(404, "the upload was deleted")
        }
    }

    private func delete(_ id: String) async throws -> WebReply {
        guard let arrival = directory.find(id) else { return textReply(404, "there is no such upload") }
        let directory = directory
        try await blocking { try arrival.delete(from: directory) }
        directory.log("deleted upload \(arrival.shownID), \(arrival.requestedPath.display)")
        return WebReply(status: 204, headers: [Self.version])
    }

    // MARK: Messages

    private func textReply(_ status: Int, _ text: String, _ headers: [(String, String)] = []) -> WebReply {
        .text(status, text, headers: [Self.version] + headers)
    }

    /// Logs a refusal that the receiver's owner should know of.
    private func refused(_ request: WebRequest, _ status: Int, _ text: String) -> WebReply {
        directory.log("refused \(shown(request)): \(text)")
        return textReply(status, text)
    }

    private func failed(_ error: any Error, _ request: WebRequest) -> WebReply {
        directory.log("failed \(shown(request)): \(error)")
        if let error = error as? SystemError, error.isFull {
            return textReply(507, "the receiver's disk is full; the bytes so far are kept")
        }
        return textReply(500, "the receiver could not store this; its log says why")
    }

    private func shown(_ request: WebRequest) -> String {
        "\(FilePath(request.method).display) from \(request.peer.address ?? "a local process")"
    }
}
