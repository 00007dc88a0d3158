internal import Core

/// The parts of an upload that the service has.
struct S3PartList: Sendable {
    let api: S3API

    func held(_ piece: PartsContext) async throws -> RemoteParts {
        if api.hasNoList { return .unknown }
        switch try await api.parts(of: piece.checkpoint.s3.upload ?? "", piece.checkpoint.s3.objectKey) {
        case .none:
            api.hasNoList = true
            return .unknown
        case .refused(let error):
            if api.settings.assignedObject != nil { throw error }
            // The service's acknowledgements are trusted: an invalid key is reported with the next part.
            api.notePartsRefused()
            return .unknown
        case .gone(let error): return .gone(error)
        case .list(let parts):
            return .parts(
                parts.map { AcknowledgedPart(index: $0.number - 1, size: $0.size, tag: $0.tag) })
        }
    }

    /// Compares the ETags only: our own tag contains the checksum too.
    static func isSame(_ mine: String, _ theirs: String) -> Bool { S3Tag(mine).etag == S3Tag(theirs).etag }
}
