internal import Core

/// The result of an upload to a bucket.
enum S3VerifiedObject {
    /// Values of ``RemoteObject/verifiedBy``.
    static let (unseen, byName, byAnswer) = ("unseen", "name", "answer")

    private static func warnings(_ verifiedBy: String) -> [String] {
        switch verifiedBy {
        case Self.unseen:
            [
                "the answer to its end was lost, and the key may not look at objects: the service does not know the upload any more, or "
                    + "has an object of this name, as behind an end"
            ]
        case Self.byName:
            [
                "an object is there whose name has this content's digest in it, and the key may not look at it: it is taken for an earlier "
                    + "upload of the same content"
            ]
        case Self.byAnswer:
            ["nothing that the service answered tells of the bytes, and the key may not look at the object"]
        default: []
        }
    }

    /// Records the object for later uploads.
    static func make(_ piece: PartsPiece, at api: S3API, verifiedBy: String) -> RemoteObject {
        let key = piece.checkpoint.s3.objectKey
        api.note(key, with: piece.order.file.sha256)
        return RemoteObject(
            id: key.display, url: api.address(of: key), verifiedBy: verifiedBy, warnings: warnings(verifiedBy))
    }
}
