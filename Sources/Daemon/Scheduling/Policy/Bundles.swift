internal import Config
internal import Core
internal import Store

// Which uploads may share a transfer.

extension BatchLimits {
    /// Whether an upload may share a transfer with others.
    func isBundled(_ claim: Claim) -> Bool {
        let goesAlone = claim.checkpoint != nil || claim.asset.stagingMode == .inPlace
        return isBundled(size: claim.asset.stagedSize, isBegun: goesAlone, of: claim.upload.folder)
    }
}

extension PolicyOverrides {
    /// Whether a folder has rules of its own that cannot be applied to files which travel with those of other folders.
    var goesAlone: Bool {
        concurrency != nil || beforeUpload != nil || rules.dependsOnNetwork || !rules.concurrency.isEmpty
    }
}
