internal import Core

/// Looks for the object of an upload after an answer was lost.
struct S3ObjectFinder: Sendable {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    private var settings: S3Settings { api.settings }

    func found(_ piece: PartsContext) async throws -> RemoteObject? {
        try await found(piece, try await api.lookUp(piece.checkpoint.s3.objectKey))
    }

    func found(_ piece: PartsContext, _ lookup: S3API.KeyLookup) async throws -> RemoteObject? {
        let key = piece.checkpoint.s3.objectKey
        let there: S3API.Object
        switch lookup {
        case .there(let object): there = object
        case .nothing: return nil
        case .hidden, .ended: return try await settings.assignedObject?.isWhole() == true ? object(piece, "held") : nil
        }
        switch try await S3ObjectComparison(api: api, isSingle: isSingle).compare(
            there, at: key, with: piece.order.file, piece.plan, isOurs: true)
        {
        case .same: return object(piece, "held")
        case .other: return nil
        case .damaged(let error): throw error
        }
    }

    func isAbsent(_ piece: PartsContext) async throws -> Bool {
        switch try await api.lookUp(piece.checkpoint.s3.objectKey) {
        case .there: false
        case .nothing: true
        case .hidden, .ended: try await settings.assignedObject?.isWhole() == false
        }
    }

    private func object(_ piece: PartsContext, _ verifiedBy: String) -> RemoteObject {
        S3VerifiedObject.make(piece, at: api, verifiedBy: verifiedBy)
    }

    /// Whether the object of an upload exists whose end may have been reached. It stays, even if the upload is
    /// cancelled.
    ///
    /// - Throws: ``UploadError``, with ``Failure/Code/removalUnknown`` when it cannot be found out; `CancellationError`.
    func isWhole(_ checkpoint: PartsCheckpoint) async throws -> Bool {
        let key = checkpoint.s3.objectKey
        var words = "the credential does not permit reading the object"
        do {
            switch try await api.lookUp(key) {
            case .nothing: return false
            case .there(let object):
                guard object.size == (checkpoint.size ?? 0) else { return false }
                return object.sha256.map { $0 == checkpoint.sha256 } ?? true
            case .hidden, .ended: if let isWhole = try await settings.assignedObject?.isWhole() { return isWhole }
            }
        } catch let error as UploadError where error.remedy == .authenticate { words = error.failure.message }
        var error = UploadError(
            api.failure(
                .protocol, .removalUnknown,
                "it was given up at its end, and whether the object is there could not be found out: \(words); look at \(api.address(of: key))",
                retryable: false), remedy: .failUpload)
        error.isConclusive = true
        throw error
    }
}
