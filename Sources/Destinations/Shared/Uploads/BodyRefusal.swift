internal import Synchronization

/// Whether a server refuses bytes in every request (405 to PATCH and the like). Then no body leaves before a request
/// without one was accepted, and only a small one until one was accepted. Shared by all uploads to a destination; over a
/// restart the checkpoint keeps it for the upload, and for tus ``RequestSize`` for the others.
final class BodyRefusal: Sendable {
    private let state = Atomic(false)

    var isRefused: Bool {
        get { state.load(ordering: .relaxed) }
        set { state.store(newValue, ordering: .relaxed) }
    }
}
