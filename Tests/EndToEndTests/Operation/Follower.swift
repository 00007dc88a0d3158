import Core
import Foundation
import Glibc
import Linux
import TestKit

/// A reader that follows the events over the socket, and continues after the last one whenever the stream ends.
actor Follower {
    struct Event: Sendable, Equatable, CustomStringConvertible {
        let seq: Int64
        let type: String
        let id: String?
        let detail: [String: String]
        var description: String {
            "\(seq) \(type) \(id ?? "") \(detail.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " "))"
        }
    }

    /// The errors of the stream itself.
    private(set) var problems: [String] = []
    /// By their numbers; an event that arrives more than once has to be the same each time, or it is a problem.
    private var known: [Int64: Event] = [:]
    private(set) var connections = 0
    private var last: Int64 = 0
    private let socket: FilePath
    private let patience: Int?

    /// - Parameter patience: The number of events after which it disconnects and connects again; `nil` to stay as long
    ///   as possible.
    init(_ socket: FilePath, leavingAfter patience: Int? = nil) {
        self.socket = socket
        self.patience = patience
    }

    /// Everything but progress, in the order of the numbers.
    var events: [Event] { known.values.sorted { $0.seq < $1.seq } }
    var newest: Int64 { last }

    /// Follows until it is cancelled. Tries again when the daemon does not answer.
    func follow() async {
        while !Task.isCancelled {
            // A killed daemon may leave half an event behind, or no server on the socket.
            try? await once()
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    private func once() async throws {
        let wire = try Wire(unix: socket)
        try await withTaskCancellationHandler {
            try await wire.send("GET /v1/events HTTP/1.1\r\nHost: sluice\r\nLast-Event-ID: \(last)\r\n\r\n")
            guard try await wire.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200") else { return }
            connections += 1
            var (seq, type, count): (Int64?, String, Int) = (nil, "", 0)
            while patience.map({ count < $0 }) ?? true {
                let line = try await wire.read(through: "\n").dropLast()
                if line.hasPrefix("id: ") { seq = Int64(line.dropFirst(4)) }
                if line.hasPrefix("event: ") { type = String(line.dropFirst(7)) }
                guard line.hasPrefix("data: "), let number = seq else { continue }
                take(number, type, String(line.dropFirst(6)))
                count += 1
            }
        } onCancel: {
            wire.vanish()
        }
    }

    private struct Written: Decodable {
        struct Op: Decodable { let id: String }
        let seq: Int64
        let type: String
        let op: Op?
        let detail: [String: String]
    }

    private func take(_ seq: Int64, _ type: String, _ data: String) {
        guard let written = try? JSONDecoder().decode(Written.self, from: Data(data.utf8)), written.seq == seq,
            written.type == type
        else {
            problems.append("event \(seq) cannot be read: \(data.prefix(200))")
            return
        }
        if seq < last { problems.append("event \(seq) came behind \(last)") }
        if type == "reset" || type == "overflow" { problems.append("\(type) at \(seq)") }
        last = max(last, seq)
        guard type != "progress" else { return }
        let event = Event(seq: seq, type: type, id: written.op?.id, detail: written.detail)
        if let before = known.updateValue(event, forKey: seq), before != event {
            problems.append("two events have the number \(seq): \(before), \(event)")
        }
    }
}

/// The life of uploads according to their events.
enum EventChecks {
    static let ends: Set<String> = ["completed", "failed", "cancelled"]

    /// The errors in the events of each upload, which have to be complete and in order. `states` has the final states.
    static func problems(_ events: [Follower.Event], states: [String: String]) -> [String] {
        var problems: [String] = []
        for (id, events) in Dictionary(grouping: events.filter { $0.id != nil }, by: { $0.id ?? "" }) {
            let tale = events.map(\.description).joined(separator: "\n  ")
            func wrong(_ what: String) { problems.append("\(id): \(what)\n  \(tale)") }
            if events.first?.type != "added" { wrong("does not begin with `added`") }
            if events.count(where: { $0.type == "added" }) != 1 { wrong("is added more than once") }
            var state = "staging"
            // The ends of this generation; a retry starts another one.
            var ends: [String] = []
            for event in events {
                guard let from = event.detail["from"], let to = event.detail["to"] else { continue }
                if from != state { wrong("goes from \(from) where it was \(state)") }
                if ends.contains(state), !Self.ends.contains(to) {
                    ends = []
                } else if Self.ends.contains(to) {
                    ends.append(to)
                }
                if Self.ends.contains(to) != Self.ends.contains(event.type) { wrong("\(event.type) leads to \(to)") }
                // A person may still give up a failed upload, in the same generation.
                if ends.count > 1, ends != ["failed", "cancelled"] { wrong("has ended as \(ends)") }
                state = to
            }
            if let shown = states[id], shown != state { wrong("is \(shown) and told as \(state)") }
        }
        return problems
    }
}
