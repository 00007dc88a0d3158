/// How many bytes one request to a remote carries at most, as refusals and cut requests have shown.
package struct RequestSize: Hashable, Sendable {
    /// Bytes of one request.
    package var most: Int64
    /// The smallest request that has failed, in bytes.
    package var failed: Int64
    /// So many requests in a row without trouble, and a request of that size is tried again.
    package var patience: Int

    package init(most: Int64, failed: Int64, patience: Int) {
        self.most = most
        self.failed = failed
        self.patience = patience
    }
}
