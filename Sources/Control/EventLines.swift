internal import API
internal import Core
internal import Synchronization

// Server-sent events (WHATWG HTML, section 9.2): lines `id:`, `event:` and `data:`, followed by a blank one.

extension EventView {
    /// The event as it is sent.
    func lines() throws -> [UInt8] {
        Array("id: \(seq)\nevent: \(type.rawValue)\ndata: ".utf8) + (try JSON.bytes(self)) + Array("\n\n".utf8)
    }
}

/// Encodes each event once for all subscribers: most of a reader's cost is the encoding.
final class EventWriter: Sendable {
    private struct State {
        var lines: [Int64: [UInt8]] = [:]
        var order: [Int64] = []
        /// The newest progress of each upload. It has no number of its own, and all subscribers with the same position
        /// see the same.
        var progress: [String: (event: EventView, lines: [UInt8])] = [:]
    }

    private let state = Mutex(State())
    /// As many as the daemon keeps views of, for readers of recent events: their queues share the text of each.
    private static let capacity = 1024
    /// Number of uploads whose progress is kept.
    private static let running = 64

    func lines(_ event: EventView) throws -> [UInt8] {
        // Events about the stream itself have no number of their own.
        if event.type.isAboutStream { return try event.lines() }
        if event.type == .progress, let id = event.op?.id {
            if let known = state.withLock({ $0.progress[id] }), known.event == event { return known.lines }
            let lines = try event.lines()
            state.withLock { state in
                // Ended uploads are of no use, and running ones report again at once.
                if state.progress.count >= Self.running { state.progress = [:] }
                state.progress[id] = (event, lines)
            }
            return lines
        }
        if let known = state.withLock({ $0.lines[event.seq] }) { return known }
        let lines = try event.lines()
        state.withLock { state in
            guard state.lines.updateValue(lines, forKey: event.seq) == nil else { return }
            state.order.append(event.seq)
            guard state.order.count > Self.capacity else { return }
            for seq in state.order.prefix(Self.capacity / 2) { state.lines[seq] = nil }
            state.order.removeFirst(Self.capacity / 2)
        }
        return lines
    }
}

/// Assembles events from pieces of a stream, cut anywhere.
struct EventParser {
    private var line: [UInt8] = []
    private var data: [UInt8] = []

    /// Limit for the bytes of a line, and of all lines of an event: an event without an end is not ours.
    static let longest = 4 << 20

    /// The events that end in `piece`.
    ///
    /// - Throws: Errors of `JSONDecoder`, ``ControlError/protocolFault(_:)`` for an event without an end.
    mutating func parse(_ piece: [UInt8]) throws -> [EventView] {
        var events: [EventView] = []
        for byte in piece {
            if byte != UInt8(ascii: "\n") {
                line.append(byte)
                guard line.count + data.count <= Self.longest else {
                    throw ControlError.protocolFault("an incomplete event")
                }
                continue
            }
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if line.isEmpty {
                if !data.isEmpty { events.append(try JSON.value(EventView.self, from: data)) }
                data = []
            } else if line.starts(with: "data:".utf8) {
                let value = line.dropFirst(5)
                data += value.first == UInt8(ascii: " ") ? value.dropFirst() : value
            }
            // The data contains `id:` and `event:` too; `retry:` and comments are for browsers and idle connections.
            line = []
        }
        return events
    }
}
