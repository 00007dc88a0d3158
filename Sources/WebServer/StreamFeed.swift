internal import CMicroHTTPD
internal import Glibc
internal import Synchronization

/// Feeds an `AsyncStream` into a reply: one chunk at a time waits here until libmicrohttpd has taken it.
///
/// The connection is suspended while there is nothing to send.
///
/// `@unchecked Sendable`: the connection is resumed with the lock held, and only while it is suspended, since
/// libmicrohttpd guarantees its address only then; everything else is constant or protected by the lock.
final class StreamFeed: @unchecked Sendable {
    private struct State {
        var chunk: ArraySlice<UInt8> = []
        var isOver = false
        var isSuspended = false
        /// The stream's task, waiting for the chunk to be taken.
        var sender: CheckedContinuation<Void, Never>?
        var task: Task<Void, Never>?
    }

    private let connection: OpaquePointer
    private let state = Mutex(State())

    init(connection: OpaquePointer) { self.connection = connection }

    /// A response that reads from here, and keeps this alive while it does.
    func response() -> OpaquePointer? {
        let context = Unmanaged.passRetained(self).toOpaque()
        // libmicrohttpd has a buffer of this size for each reply, and none for chunked replies, as in HTTP/1.1.
        let response = sluice_mhd_stream(
            1 << 10,
            { context, _, buffer, capacity in
                guard let context, let buffer else { return sluice_mhd_end }
                return Unmanaged<StreamFeed>.fromOpaque(context).takeUnretainedValue()
                    .read(into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
            }, context,
            { context in if let context { Unmanaged<StreamFeed>.fromOpaque(context).release() } })
        if response == nil { Unmanaged<StreamFeed>.fromOpaque(context).release() }
        return response
    }

    func start(_ serverState: ServerState, _ stream: AsyncStream<[UInt8]>) {
        let task = serverState.start {
            for await chunk in stream where !chunk.isEmpty { await self.send(chunk) }
            self.finish()
        }
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    /// The client or the server has gone: nothing more is sent, and the stream's task is cancelled.
    func close() {
        let (task, sender) = state.withLock { state in
            state.isOver = true
            state.chunk = []
            resume(&state)
            defer { state.sender = nil }
            return (state.task, state.sender)
        }
        task?.cancel()
        sender?.resume()
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let (count, sender) = state.withLock { state -> (Int, CheckedContinuation<Void, Never>?) in
            if state.chunk.isEmpty {
                if state.isOver { return (sluice_mhd_end, nil) }
                state.isSuspended = true
                MHD_suspend_connection(connection)
                return (0, nil)
            }
            let count = min(buffer.count, state.chunk.count)
            buffer.copyBytes(from: state.chunk.prefix(count))
            state.chunk.removeFirst(count)
            guard state.chunk.isEmpty else { return (count, nil) }
            defer { state.sender = nil }
            return (count, state.sender)
        }
        sender?.resume()
        return count
    }

    /// Returns when the chunk has been taken, or will never be.
    private func send(_ chunk: [UInt8]) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.isOver { return true }
                state.chunk = chunk[...]
                state.sender = continuation
                resume(&state)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// The stream has ended, and so does the reply, once all chunks are taken.
    private func finish() {
        state.withLock { state in
            state.isOver = true
            resume(&state)
        }
    }

    private func resume(_ state: inout State) {
        guard state.isSuspended else { return }
        state.isSuspended = false
        MHD_resume_connection(connection)
    }
}
