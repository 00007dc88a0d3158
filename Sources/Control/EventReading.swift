internal import API
internal import Core
internal import Synchronization

/// The state of one connection to the event stream. The transport's thread writes it, and the caller reads it later.
final class EventReading: Sendable {
    private struct State {
        var parser = EventParser()
        var last: Int64?
        var head: [UInt8] = []
        var wasTooSlow = false
        var fault: (any Error)?
    }

    private let state: Mutex<State>
    private let out: AsyncThrowingStream<EventView, any Error>.Continuation

    init(last: Int64?, _ out: AsyncThrowingStream<EventView, any Error>.Continuation) {
        state = Mutex(State(last: last))
        self.out = out
    }

    /// The number of the last event that was passed on.
    var last: Int64? { state.withLock { $0.last } }
    /// Part of the answer has come.
    var hasBegun: Bool { !head.isEmpty }
    /// The first bytes of the answer, in case it is an error.
    var head: [UInt8] { state.withLock { $0.head } }
    /// The stream ended because this reader was too slow; connecting again from `last` loses nothing.
    var wasTooSlow: Bool { state.withLock { $0.wasTooSlow } }
    var fault: (any Error)? { state.withLock { $0.fault } }

    /// - Returns: Whether to continue.
    func receive(_ piece: [UInt8]) -> Bool {
        state.withLock { state in
            if state.head.count < 64 << 10 { state.head += piece }
            do {
                for event in try state.parser.parse(piece) {
                    if event.type == .overflow {
                        state.wasTooSlow = true
                        return false
                    }
                    guard case .enqueued = out.yield(event) else {
                        state.wasTooSlow = true
                        return false
                    }
                    state.last = event.seq
                }
                return true
            } catch {
                state.fault = ControlError.protocolFault("an event that cannot be read")
                return false
            }
        }
    }
}
