/// The maximum size of one request to a remote, as learned from refusals and cut requests.
package struct RequestSize: Hashable, Sendable {
    /// Maximum bytes of one request.
    package var most: Int64
    /// The smallest request that has failed, in bytes.
    package var failed: Int64
    /// After this many requests in a row without trouble, a request of the size that failed is tried again.
    package var requiredRun: Int
    /// Whether it refuses requests with bytes by their method, whatever their size.
    package var refusesBytes = false

    package init(most: Int64, failed: Int64, requiredRun: Int, refusesBytes: Bool = false) {
        self.refusesBytes = refusesBytes
        self.most = most
        self.failed = failed
        self.requiredRun = requiredRun
    }
}
