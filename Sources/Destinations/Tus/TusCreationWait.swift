internal import Core

// The wait after unusable answers to creations, kept over a restart.

extension TusDialect {
    /// A longer one is of a clock that was wrong.
    private static let longestWait: Int64 = 6 * 3_600_000

    /// - Throws: ``UploadError`` while no creation of this upload may be sent.
    func awaitNextCreation(_ checkpoint: OffsetCheckpoint) throws(UploadError) {
        guard let next = checkpoint.tus.nextCreation else { return }
        let left = next.subtractingReportingOverflow(client.clocks.wall().milliseconds).partialValue
        if (1...Self.longestWait).contains(left) { throw client.tooManyCreations(.milliseconds(left)) }
    }

    func noteNextCreation(_ error: UploadError, _ checkpoint: inout OffsetCheckpoint) {
        checkpoint.tus.nextCreation = nil
        guard error.isUnusableCreation, case .holdDestination(let wait?) = error.remedy else { return }
        checkpoint.tus.nextCreation = client.clocks.wall().advanced(by: wait).milliseconds
    }
}
