internal import Core

/// A part that was sent, with its result.
struct SentPart: Sendable {
    let part: PartPlan.Part
    let sending: PartSendResult
    /// ``PartsUpload/renamings`` when it left.
    let renamings: Int
    /// Number of parts that had arrived by then.
    let arrivals: Int
}

/// A part that the remote refused as damaged.
struct DamagedPartError: Error {
    let part: Int
    let error: UploadError
}

/// Parts that were sent under a name that the upload no longer has, in parallel with the part whose answer changed it.
/// It is unknown whether they arrived before the change.
struct MisplacedPartsError: Error { let parts: [Int] }
