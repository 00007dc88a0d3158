internal import Core

/// A part that has left, and how that ended.
struct SentPart: Sendable {
    let part: PartPlan.Part
    let sending: PartSending
    /// ``PartsRun/renamings`` when it left.
    let renamings: Int
    /// How many parts had arrived by then.
    let arrivals: Int
}

/// A part that the remote refused as damaged.
struct DamagedPart: Error {
    let part: Int
    let error: UploadError
}

/// Parts that went out under a name that the upload has no more, side by side with the one whose answer changed it: nobody knows
/// whether they came before that.
struct MisplacedParts: Error { let parts: [Int] }
