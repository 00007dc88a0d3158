internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import WebServer

/// The tus protocol 1.0.0: core, `creation` and `termination` (https://tus.io/protocols/resumable-upload).
///
/// | request                | reply                                                                  |
/// |------------------------|------------------------------------------------------------------------|
/// | OPTIONS                | 204, the supported extensions, and the free space                      |
/// | POST `/files/`         | 201 and `Location`; twice with the same `sluiceId`: the same `Location` |
/// | HEAD `/files/`         | our own: 200 when the content named by `Upload-Length` and `Upload-Metadata` is held, else 404 |
/// | HEAD                   | 200 and the offset, below which everything is on the disk              |
/// | PATCH                  | 204; 409 other offset, 413 too long, 423 interrupted, 460 wrong digest, 503 all bytes there and not finished, 507 full |
/// | DELETE                 | 204; removes a finished upload's file too, if it is still the same    |
final class TusService: WebService {
    private static let version = ("Tus-Resumable", "1.0.0")

    /// Announces that a HEAD of the endpoint is answered, and marks those answers.
    private static let lookup = "Sluice-Lookup"

    /// Size of the largest upload for which there is space now.
    private static let spaceFree = "Sluice-Space-Free"

    private let directory: UploadDirectory
    private let token: [UInt8]?
    private let maxSize: Int64?
    private let clocks: any Clocks
    private let refusedClients = RefusedClientLog()
    /// Bodies that are being received, by the number of their request.
    private let incoming = Mutex<[UInt64: PatchBodyWriter]>([:])

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
        guard method(of: request) == "PATCH" else { return .collect(limit: 64 << 10) }
        switch begin(request) {
        case .success(let sink): return .sink(sink)
        case .failure(let refusal): return .refuse(refusal.reply)
        }
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

    private func begin(_ request: WebRequest) -> Result<PatchBodyWriter, RefusalError> {
        func refuse(_ status: Int, _ text: String) -> Result<PatchBodyWriter, RefusalError> {
            .failure(RefusalError(reply: textReply(status, text)))
        }
        guard request.headers["content-type"] == "application/offset+octet-stream" else {
            return refuse(415, "the Content-Type of a PATCH is application/offset+octet-stream")
        }
        guard let offset = number(request.headers["upload-offset"]) else {
            return refuse(400, "Upload-Offset is missing or not a number")
        }
        guard case .upload(let id) = target(of: request), let arrival = directory.find(id) else {
            return refuse(404, "there is no such upload")
        }
        let length = request.headers["content-length"].flatMap { Int64($0) } ?? 0
        // Bytes that do not fit are refused before the right to write changes.
        guard length <= max(0, arrival.length - offset) || offset > arrival.length else {
            return refuse(413, "the upload has \(arrival.length) bytes, and \(length) from \(offset) on exceed them")
        }
        do {
            let sink = try PatchBodyWriter(arrival, on: directory, number: request.number) { [weak self] in
                self?.incoming.withLock { _ = $0.removeValue(forKey: request.number) }
            }
            guard arrival.beginWriting(request.number, at: offset) != nil else {
                let text = "the offset of the upload is not \(offset); ask for it with HEAD"
                return .failure(
                    RefusalError(reply: textReply(409, text, [("Upload-Offset", String(arrival.nextOffset))])))
            }
            incoming.withLock { $0[request.number] = sink }
            return .success(sink)
        } catch { return .failure(RefusalError(reply: failed(error, request))) }
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
        let space = try? await blocking { try Self.space(for: directory) }
        var headers = [
            Self.version, ("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination"), (Self.lookup, "1"),
        ]
        if let maxSize { headers.append(("Tus-Max-Size", String(maxSize))) }
        if let space { headers.append((Self.spaceFree, String(max(0, space.bytes)))) }
        return WebReply(status: 204, headers: headers)
    }

    /// The allowed size of an upload, and the free space of the disk.
    ///
    /// One megabyte stays free for the records, without which no upload can be finished.
    private static func space(for directory: UploadDirectory) throws -> (bytes: Int64, free: Int64) {
        let free = try Space(at: directory.folder).free
        return (free - (1 << 20), free)
    }

    private func create(_ request: WebRequest) async throws -> WebReply {
        guard let length = number(request.headers["upload-length"]) else {
            return textReply(
                400, "Upload-Length is missing or not a number; uploads of unknown length are not accepted")
        }
        if request.headers["upload-concat"] != nil {
            return textReply(400, "uploads in parallel parts are not accepted")
        }
        if let maxSize, length > maxSize {
            return refused(request, 413, "\(length) bytes are more than the maximum of \(maxSize) for one upload")
        }
        guard let metadata = UploadMetadataHeader(header: request.headers["upload-metadata"] ?? "") else {
            return textReply(400, "Upload-Metadata is not well formed")
        }
        let requestedPath: FilePath
        do { requestedPath = try FinalName.path(from: metadata) } catch { return refused(request, 400, error.text) }
        let directory = directory
        do {
            let (arrival, offset) = try await blocking { () throws -> (IncomingUpload, Int64) in
                let space = try Self.space(for: directory)
                let (arrival, isNew) = try directory.create(
                    length: length, metadata: metadata, requestedPath: requestedPath)
                if isNew && space.bytes < length {
                    try arrival.delete(from: directory)
                    throw DiskFullError(free: space.free, length: length)
                }
                if isNew {
                    directory.log("created \(requestedPath.display), \(length) bytes, upload \(arrival.shownID)")
                }
                if isNew, let digest = metadata.text("sha256")?.lowercased(),
                    let held = try Lookup(directory: directory).find(requestedPath, length: length, digest: digest)
                {
                    try arrival.adopt(held, digest: digest, on: directory)
                    directory.log("held already: \(held.path.display), \(length) bytes, upload \(arrival.shownID)")
                }
                // An empty upload is finished as soon as it is created.
                if length == 0, case .refused(let why) = try arrival.commit(on: directory) { throw ReceiverError(why) }
                if arrival.isFinished { return (arrival, length) }
                // The sender created it before and has forgotten it: the received bytes need not be sent again.
                if !isNew, case .partial(let offset) = try arrival.commit(on: directory) { return (arrival, offset) }
                return (arrival, 0)
            }
            var headers = [Self.version, ("Location", "/files/\(arrival.id)")]
            if offset > 0 { headers.append(("Upload-Offset", String(offset))) }
            return WebReply(status: 201, headers: headers)
        } catch is UploadDirectory.BusyError {
            return textReply(503, "this upload is being created by another request", [("Retry-After", "1")])
        } catch let full as DiskFullError {
            return refused(request, 507, "\(full.length) bytes do not fit: the disk has \(full.free) left")
        }
    }

    /// Whether the folder contains this content under this name, according to the disk.
    private func lookUp(_ request: WebRequest) async throws -> WebReply {
        guard let length = number(request.headers["upload-length"]),
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

    private struct DiskFullError: Error {
        let free: Int64
        let length: Int64
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

    /// Digits alone, up to 2^63-1.
    private func number(_ text: String?) -> Int64? {
        guard let text, !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }
}
