/// A renewal of the temporary right to send, for the same upload.
package struct CredentialRenewal: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        /// The old right was about to end.
        case ending
        /// The remote no longer accepted the old right.
        case refused
    }
    package var reason: Reason
    /// When the new right ends, where that is known.
    package var until: WallTime?

    package init(reason: Reason, until: WallTime? = nil) {
        self.reason = reason
        self.until = until
    }
}
