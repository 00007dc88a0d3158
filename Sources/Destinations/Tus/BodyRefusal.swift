internal import Synchronization

/// Whether a server refuses to take bytes by any request (405 to PATCH and what is like it): then no body leaves before a request without
/// one was taken. Shared by all uploads to a destination.
final class BodyRefusal: Sendable {
    /// The field of a checkpoint that says so after a restart.
    static let field = "patch_refused"

    private let state = Atomic(false)

    var isRefused: Bool {
        get { state.load(ordering: .relaxed) }
        set { state.store(newValue, ordering: .relaxed) }
    }
}
