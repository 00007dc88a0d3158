internal import Core
internal import Transport

extension Shortage {
    /// The error of an upload that waits until the quota has room.
    func error(_ failure: StagedFile.MakeFailure) -> UploadError {
        UploadError(failure(.quota, .shortOfQuota, text, true), remedy: .lackQuota(after: after))
    }
}
