internal import Core
internal import Transport

/// The time after which a server may drop an unfinished upload (tus 1.0, "Expiration"). It may move with each answer.
struct UploadExpiry: Hashable {
    /// By the clock of this machine.
    let time: WallTime

    /// - Parameter now: The wall clock when the answer arrived. Where the server names its own time, the difference
    ///   between the clocks is taken into account.
    /// - Returns: `nil` without a usable `Upload-Expires`. Some servers write other forms than that of HTTP, and no
    ///   upload fails for that.
    init?(_ response: Response, now: WallTime) {
        guard let end = response.headers["Upload-Expires"].flatMap({ httpDate($0) }) else { return nil }
        let theirs = response.headers["Date"].flatMap { httpDate($0) } ?? now
        let (left, isTooFar) = end.milliseconds.subtractingReportingOverflow(theirs.milliseconds)
        if isTooFar { return nil }
        time = now.advanced(by: .milliseconds(left))
    }

    func store(in checkpoint: inout OffsetCheckpoint) { checkpoint.expires = time.milliseconds }
}
