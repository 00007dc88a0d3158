internal import Core
internal import Linux
internal import WebServer

/// The headers of a creation (tus 1.0, "Creation").
struct CreationRequest: Sendable {
    /// The type of a body with bytes of the upload.
    static let bytesType = "application/offset+octet-stream"

    let length: Int64
    let metadata: UploadMetadataHeader
    let requestedPath: FilePath

    struct RefusedError: Error {
        let status: Int
        let text: String
        /// The receiver's owner should know of it.
        let isLogged: Bool

        init(_ status: Int, _ text: String, isLogged: Bool = false) {
            self.status = status
            self.text = text
            self.isLogged = isLogged
        }
    }

    init(_ request: WebRequest, maxSize: Int64?) throws(RefusedError) {
        guard let length = wholeNumber(request.headers["upload-length"]) else {
            throw RefusedError(
                400, "Upload-Length is missing or not a number; uploads of unknown length are not accepted")
        }
        if request.headers["upload-concat"] != nil {
            throw RefusedError(400, "uploads in parallel parts are not accepted")
        }
        if let maxSize, length > maxSize {
            throw RefusedError(
                413, "\(length) bytes are more than the maximum of \(maxSize) for one upload", isLogged: true)
        }
        let hasBytes = request.headers["content-type"] == Self.bytesType
        if hasBytes, let count = request.headers["content-length"].flatMap({ Int64($0) }), count > length {
            throw RefusedError(413, "the body is longer than the upload", isLogged: true)
        }
        guard let metadata = UploadMetadataHeader(header: request.headers["upload-metadata"] ?? "") else {
            throw RefusedError(400, "Upload-Metadata is not well formed")
        }
        do { requestedPath = try FinalName.path(from: metadata) } catch {
            throw RefusedError(400, error.text, isLogged: true)
        }
        self.length = length
        self.metadata = metadata
    }
}

/// Makes the upload of a creation known, with the bytes that the creation carried. Waits for the disk.
struct Creation {
    private let request: CreationRequest
    private let directory: UploadDirectory
    private let body: UploadBodyWriter?

    init(_ request: CreationRequest, _ directory: UploadDirectory, _ body: UploadBodyWriter?) {
        self.request = request
        self.directory = directory
        self.body = body
    }

    /// The allowed size of an upload, and the free space of the disk.
    ///
    /// One megabyte stays free for the records, without which no upload can be finished.
    static func space(for directory: UploadDirectory) throws -> (bytes: Int64, free: Int64) {
        let free = try Space(at: directory.folder).free
        return (free - (1 << 20), free)
    }

    /// - Parameter written: Bytes of it that are on the disk.
    static func requireSpace(for length: Int64, written: Int64 = 0, on directory: UploadDirectory) throws {
        let space = try space(for: directory)
        if space.bytes < length - written {
            throw CreationRequest.RefusedError(
                507, "\(length) bytes do not fit: the disk has \(space.free) left", isLogged: true)
        }
    }

    /// - Returns: The upload, and the offset below which its bytes are on the disk.
    func run() throws -> (IncomingUpload, Int64) {
        let length = request.length
        let (arrival, isNew) = try directory.create(request, with: body)
        let written = isNew ? body.map { $0.arrival.nextOffset } ?? 0 : 0
        if isNew {
            do { try Self.requireSpace(for: length, written: written, on: directory) } catch {
                try arrival.delete(from: directory)
                throw error
            }
            directory.log("created \(request.requestedPath.display), \(length) bytes, upload \(arrival.shownID)")
            try adoptHeld(arrival)
        }
        if arrival.isFinished { return (arrival, length) }
        // A new upload without bytes has none, except that an empty one is finished as soon as it is created. The sender
        // of one that is not new has forgotten it: the received bytes need not be sent again.
        if isNew, length > 0, written == 0 { return (arrival, 0) }
        switch try arrival.commit(on: directory) {
        case .partial(let offset): return (arrival, offset)
        case .finished: return (arrival, length)
        case .refused(let why) where length == 0: throw ReceiverError(why)
        // The upload is back at its beginning: its next PATCH is refused in the same way.
        case .refused(let why):
            directory.log("refused \(request.requestedPath.display): \(why)")
            return (arrival, 0)
        case .gone: return (arrival, 0)
        }
    }

    private func adoptHeld(_ arrival: IncomingUpload) throws {
        guard let digest = request.metadata.text("sha256")?.lowercased(),
            let held = try Lookup(directory: directory).find(
                request.requestedPath, length: request.length, digest: digest)
        else { return }
        try arrival.adopt(held, digest: digest, on: directory)
        directory.log("held already: \(held.path.display), \(request.length) bytes, upload \(arrival.shownID)")
    }
}

/// Digits alone, up to 2^63-1.
func wholeNumber(_ text: String?) -> Int64? {
    guard let text, !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
}
