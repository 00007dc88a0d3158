/// The limits of the bytes that are sent: quotas, and rates.
struct SendingLimits: Sendable {
    let ledger: Ledger
    let bandwidth: BandwidthLimiter
}
