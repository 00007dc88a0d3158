internal import Core

/// The result of an upload to a bucket.
enum S3VerifiedObject {
    /// Values of ``RemoteObject/verifiedBy``.
    static let (byName, byAnswer) = ("name", "answer")

    private static func warnings(_ verifiedBy: String) -> [String] {
        switch verifiedBy {
        case Self.byName:
            [
                "an object exists whose name contains the digest of this content, and the key may not read it: it "
                    + "is regarded as an earlier upload of the same content"
            ]
        case Self.byAnswer:
            ["no answer of the service confirms the bytes, and the key may not read the object"]
        default: []
        }
    }

    /// Records the object for later uploads.
    static func make(_ piece: PartsContext, at api: S3API, verifiedBy: String) -> RemoteObject {
        let key = piece.checkpoint.s3.objectKey
        api.note(key, with: piece.order.file.sha256)
        return RemoteObject(
            id: key.display, url: api.address(of: key), verifiedBy: verifiedBy, warnings: warnings(verifiedBy))
    }
}
