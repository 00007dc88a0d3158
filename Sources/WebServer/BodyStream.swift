internal import Synchronization

/// The body of a request, read by one task while it arrives. A client that sends faster than it is read has to wait.
package final class BodyStream: Sendable {
    /// The client disconnected in the middle of it, or the server stops.
    package struct InterruptedError: Error, Sendable {
        package init() {}
    }

    private enum End { case complete, cut }

    private struct State {
        var bytes: [UInt8] = []
        var end: End?
        var reader: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let most: Int
    private let drained: @Sendable () -> Void

    /// - Parameters:
    ///   - most: Bytes that may wait to be read; one more piece is accepted.
    ///   - drained: Called when there is space again.
    package init(most: Int = 1 << 20, drained: @escaping @Sendable () -> Void = {}) {
        self.most = most
        self.drained = drained
    }

    /// Takes the next bytes; `false`: there is no space, and `drained` will be called.
    package func add(_ piece: UnsafeRawBufferPointer) -> Bool {
        let (isTaken, reader) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.bytes.count < most || state.end != nil else { return (false, nil) }
            if state.end == nil { state.bytes += piece }
            defer { state.reader = nil }
            return (true, state.reader)
        }
        reader?.resume()
        return isTaken
    }

    /// The whole body was added.
    package func finish() { end(.complete) }

    /// No more bytes will come. Unread bytes are discarded; after ``finish()`` it has no effect.
    package func cut() { end(.cut) }

    private func end(_ end: End) {
        let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.end == nil else { return nil }
            state.end = end
            if end == .cut { state.bytes = [] }
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// All bytes since the last call, never empty; `nil` after the last byte.
    ///
    /// - Throws: ``InterruptedError``, also when the task is cancelled.
    package func next() async throws(InterruptedError) -> [UInt8]? {
        while true {
            let (bytes, end) = state.withLock { state in
                defer { state.bytes = [] }
                return (state.bytes, state.end)
            }
            if end == .cut { throw InterruptedError() }
            if !bytes.isEmpty {
                drained()
                return bytes
            }
            if end == .complete { return nil }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isDue = state.withLock { state in
                        if !state.bytes.isEmpty || state.end != nil { return true }
                        state.reader = continuation
                        return false
                    }
                    if isDue { continuation.resume() }
                }
            } onCancel: {
                cut()
            }
        }
    }
}
