internal import API
internal import Core
internal import Linux
internal import Synchronization

/// Sends events to the socket of one subscriber.
///
/// The queue between the daemon and a slow reader is bounded. A newer progress event replaces an older one of the same
/// upload. When the queue is full nevertheless, the subscriber gets `overflow` and the end, and reconnects with its
/// last number. The daemon never waits here.
final class EventSubscriber: Sendable {
    /// The events that a subscriber requests.
    struct Filter: Sendable {
        var types: Set<EventType>?
        var destination: String?
        var id: String?

        /// From the query of a URL.
        init(_ query: [String: String]) throws(Refusal) {
            let filters = ["since", "types", "destination", "id"]
            if let strange = query.keys.filter({ !filters.contains($0) }).min() {
                throw Refusal(.badRequest, "no filter `\(strange)`; there are: " + filters.joined(separator: ", "))
            }
            let known = EventType.inStream.map(\.rawValue)
            if let strange = query["types"]?.split(separator: ",").first(where: { !known.contains(String($0)) }) {
                throw Refusal(
                    .badRequest,
                    "no event has the type `\(printable(String(strange)))`; there are: " + known.joined(separator: ", ")
                )
            }
            types = query["types"].map { Set($0.split(separator: ",").map { EventType(rawValue: String($0)) }) }
            destination = query["destination"]
            id = query["id"]
        }

        func lets(_ event: EventView) -> Bool {
            // Trouble with the stream itself is sent to every subscriber.
            if event.type.isAboutStream { return true }
            return types.map { $0.contains(event.type) } ?? true
                && destination.map { event.op?.destination == $0 || event.detail[.destination] == $0 } ?? true
                && id.map { event.op?.id == $0 } ?? true
        }
    }

    private let queue: EventQueue
    private let pump: Task<Void, Never>

    /// - Parameter heartbeat: Time between comment lines, which reveal a vanished reader.
    init(
        _ events: AsyncStream<EventView>, filter: Filter, heartbeat: Duration, capacity: Int = 1000,
        writer: EventWriter = EventWriter()
    ) {
        let queue = EventQueue(capacity: capacity, writer: writer)
        self.queue = queue
        pump = Task {
            await withTaskGroup { group in
                group.addTask {
                    for await event in events where filter.lets(event) {
                        guard queue.put(event) else { return }
                    }
                }
                group.addTask {
                    // Ends by cancellation, when the subscriber or the daemon stops.
                    while (try? await Alarms.shared.sleep(for: heartbeat)) != nil { queue.sendKeepAlive() }
                }
                await group.next()
                group.cancelAll()
            }
            queue.end()
        }
    }

    /// The reader of the stream keeps the feed alive; when the stream is released, so is everything behind it.
    deinit { pump.cancel() }

    var stream: AsyncStream<[UInt8]> { AsyncStream(unfolding: { await self.queue.next() }, onCancel: { self.end() }) }

    /// Sends the queued events to the reader, and no more.
    func end() {
        pump.cancel()
        queue.end()
    }
}

/// A queue of at most `capacity` pieces of text between one writer that never waits and one reader that does.
final class EventQueue: Sendable {
    private struct Piece {
        var bytes: [UInt8]
        /// The upload whose progress it is, so that it can be replaced.
        var progressOf: String?
    }

    private typealias Reader = CheckedContinuation<[UInt8]?, Never>

    private struct State {
        var pieces: [Piece]
        var reader: Reader?
        var isEnded = false

        mutating func removeReader() -> Reader? {
            defer { reader = nil }
            return reader
        }
    }

    private let capacity: Int
    private let writer: EventWriter
    private let state: Mutex<State>

    init(capacity: Int, writer: EventWriter = EventWriter()) {
        self.capacity = capacity
        self.writer = writer
        state = Mutex(State(pieces: [Piece(bytes: Array("retry: 3000\n\n".utf8))]))
    }

    /// Whether the reader waits for a piece.
    var isAwaited: Bool { state.withLock { $0.reader != nil } }

    // The reader is resumed without the lock: `end()` runs within its task's cancellation, which holds a lock of the
    // runtime that resuming the task needs, too.

    /// - Returns: `false` when the reader is too slow or gone, and the queue has ended.
    func put(_ event: EventView) -> Bool {
        // Every view can be encoded: its numbers are finite, and nothing else can fail. If one could not, the stream
        // would end rather than miss it.
        guard let bytes = try? writer.lines(event) else { return false }
        let piece = Piece(bytes: bytes, progressOf: event.type == .progress ? event.op?.id : nil)
        let (isTaken, reader) = state.withLock { state -> (Bool, Reader?) in
            guard !state.isEnded else { return (false, nil) }
            if let reader = state.removeReader() { return (true, reader) }
            if let id = piece.progressOf { state.pieces.removeAll { $0.progressOf == id } }
            if state.pieces.count < capacity {
                state.pieces.append(piece)
                return (true, nil)
            }
            let last = EventView(seq: event.seq - 1, ts: event.ts, type: .overflow)
            // Without this last event the reader sees the end of the stream, and connects again.
            if let bytes = try? last.lines() { state.pieces.append(Piece(bytes: bytes)) }
            state.isEnded = true
            return (false, nil)
        }
        reader?.resume(returning: bytes)
        return isTaken
    }

    /// Adds a comment, where no other piece is queued.
    func sendKeepAlive() {
        let comment = Array(": \n\n".utf8)
        let reader = state.withLock { state -> Reader? in
            guard !state.isEnded, state.pieces.isEmpty else { return nil }
            if let reader = state.removeReader() { return reader }
            state.pieces.append(Piece(bytes: comment))
            return nil
        }
        reader?.resume(returning: comment)
    }

    func end() {
        let reader = state.withLock { state in
            state.isEnded = true
            return state.removeReader()
        }
        reader?.resume(returning: nil)
    }

    /// The next piece; `nil` at the end. One caller at a time.
    func next() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let (known, earlier) = state.withLock { state -> ([UInt8]??, Reader?) in
                if !state.pieces.isEmpty { return (state.pieces.removeFirst().bytes, nil) }
                if state.isEnded { return (.some(nil), nil) }
                let earlier = state.removeReader()
                state.reader = continuation
                return (nil, earlier)
            }
            earlier?.resume(returning: nil)
            if let known { continuation.resume(returning: known) }
        }
    }
}
