internal import Synchronization

/// How many hooks may be at work at the same time, whatever they are for.
final class HookSlots: Sendable {
    static let most = 4

    private let taken = Mutex(0)
    private let onFree: @Sendable () -> Void

    /// - Parameter onFree: Called when one is given back.
    init(onFree: @escaping @Sendable () -> Void) { self.onFree = onFree }

    func take() -> Bool {
        taken.withLock { taken in
            if taken >= Self.most { return false }
            taken += 1
            return true
        }
    }

    func give() {
        taken.withLock { $0 -= 1 }
        onFree()
    }
}
