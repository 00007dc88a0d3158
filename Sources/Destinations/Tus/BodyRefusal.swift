internal import Synchronization

/// Whether a server refuses bytes in every request (405 to PATCH and the like). Then no body leaves before a request
/// without one was accepted. Shared by all uploads to a destination.
final class BodyRefusal: Sendable {
    /// The field of a checkpoint that keeps this over a restart.
    static let field = "patch_refused"

    private let state = Atomic(false)

    var isRefused: Bool {
        get { state.load(ordering: .relaxed) }
        set { state.store(newValue, ordering: .relaxed) }
    }
}
