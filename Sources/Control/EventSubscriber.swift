internal import API
internal import Core
internal import Linux
internal import Synchronization

/// Sends events to the socket of one subscriber.
///
/// Between the daemon and the reader is a short queue. While it is full, the subscriber takes no further event: a slow
/// reader costs little, and receives the stored events when it continues. A reader that takes nothing for several
/// heartbeats gets `overflow` and the end, which frees its place; it reconnects with its last number. The daemon never
/// waits here.
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

    /// - Parameters:
    ///   - heartbeat: Time between comment lines, which reveal a vanished reader, and between two looks at a reader that
    ///     does not read.
    ///   - isAllowed: Whether the reader may still read, asked with each heartbeat: its token may have been revoked.
    init(
        _ events: AsyncStream<EventView>, filter: Filter, heartbeat: Duration, capacity: Int = 32,
        writer: EventWriter = EventWriter(), isAllowed: @escaping @Sendable () -> Bool = { true }
    ) {
        let queue = EventQueue(capacity: capacity, writer: writer)
        self.queue = queue
        pump = Task {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await event in events where filter.lets(event) {
                        guard await queue.put(event) else { return }
                    }
                }
                group.addTask {
                    // Ends by cancellation, when the subscriber or the daemon stops.
                    while (try? await Alarms.shared.sleep(for: heartbeat)) != nil, isAllowed() { queue.heartbeat() }
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

/// A queue of at most `capacity` pieces of text between one writer and one reader, each of which waits for the other.
final class EventQueue: Sendable {
    private typealias Reader = CheckedContinuation<[UInt8]?, Never>

    private struct State {
        var pieces: [[UInt8]]
        var reader: Reader?
        var isEnded = false
        /// The last event in `pieces`, or of those that the reader has taken.
        var last: (seq: Int64, ts: String) = (0, "")
        /// Whether the reader has taken a piece since the last heartbeat.
        var hasRead = true
        /// Heartbeats during which the queue was full and the reader took nothing.
        var missed = 0

        mutating func removeReader() -> Reader? {
            defer { reader = nil }
            return reader
        }
    }

    private enum Offer {
        case full, ended
        case queued
        case taken(Reader)
    }

    /// A reader that takes nothing for this many heartbeats does not read any more.
    private static let patience = 4

    private let capacity: Int
    private let writer: EventWriter
    private let state: Mutex<State>
    private let vacancy = AsyncSignal()

    init(capacity: Int, writer: EventWriter = EventWriter()) {
        self.capacity = capacity
        self.writer = writer
        state = Mutex(State(pieces: [Array("retry: 3000\n\n".utf8)]))
    }

    /// Whether the reader waits for a piece.
    var isAwaited: Bool { state.withLock { $0.reader != nil } }

    /// Whether the writer waits for the reader.
    var isBlocked: Bool { vacancy.isWaiting }

    // The reader is resumed without the lock: `end()` runs within its task's cancellation, which holds a lock of the
    // runtime that resuming the task needs, too.

    /// Waits while the queue is full.
    ///
    /// - Returns: `false` when the reader is gone or the task is cancelled, and the event was not queued.
    func put(_ event: EventView) async -> Bool {
        // Every view can be encoded: its numbers are finite, and nothing else can fail. If one could not, the stream
        // would end rather than miss it.
        guard let bytes = try? writer.lines(event) else { return false }
        while !Task.isCancelled {
            let offer = state.withLock { state -> Offer in
                if state.isEnded { return .ended }
                if state.pieces.count >= capacity { return .full }
                state.last = (event.seq, event.ts)
                if let reader = state.removeReader() { return .taken(reader) }
                state.pieces.append(bytes)
                return .queued
            }
            switch offer {
            case .ended: return false
            case .full: await vacancy.wait()
            case .queued: return true
            case .taken(let reader):
                reader.resume(returning: bytes)
                return true
            }
        }
        return false
    }

    /// Adds a comment where no other piece is queued, and ends the stream of a reader that does not read.
    func heartbeat() {
        let comment = Array(": \n\n".utf8)
        let (reader, isOver) = state.withLock { state -> (Reader?, Bool) in
            guard !state.isEnded else { return (nil, false) }
            if let reader = state.removeReader() { return (reader, false) }
            if state.pieces.isEmpty { state.pieces.append(comment) }
            state.missed = state.hasRead || state.pieces.count < capacity ? 0 : state.missed + 1
            state.hasRead = false
            guard state.missed >= Self.patience else { return (nil, false) }
            let overflow = EventView(seq: state.last.seq, ts: state.last.ts, type: .overflow)
            // Without this last event the reader sees the end of the stream, and connects again.
            if let bytes = try? overflow.lines() { state.pieces.append(bytes) }
            state.isEnded = true
            return (nil, true)
        }
        reader?.resume(returning: comment)
        if isOver { vacancy.signal() }
    }

    func end() {
        let reader = state.withLock { state in
            state.isEnded = true
            return state.removeReader()
        }
        reader?.resume(returning: nil)
        vacancy.signal()
    }

    /// The next piece; `nil` at the end. One caller at a time.
    func next() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let (known, earlier) = state.withLock { state -> ([UInt8]??, Reader?) in
                state.hasRead = true
                if !state.pieces.isEmpty { return (state.pieces.removeFirst(), nil) }
                if state.isEnded { return (.some(nil), nil) }
                let earlier = state.removeReader()
                state.reader = continuation
                return (nil, earlier)
            }
            earlier?.resume(returning: nil)
            if let known {
                continuation.resume(returning: known)
                vacancy.signal()
            }
        }
    }
}
