internal import Core
internal import Linux
internal import Synchronization
internal import WebServer

/// The body of one PATCH, written as it arrives.
final class Incoming: BodySink {
    let arrival: Arrival
    private let shelf: Shelf
    private let number: UInt64
    private let path: FilePath
    private let file: Descriptor
    private let last = Mutex(Arrival.Appended.stored)
    /// Called when no reply will be requested.
    private let abandoned: @Sendable () -> Void

    init(
        _ arrival: Arrival, on shelf: Shelf, number: UInt64, abandoned: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        self.arrival = arrival
        self.shelf = shelf
        self.number = number
        self.abandoned = abandoned
        path = shelf.data(of: arrival.id)
        file = try Descriptor.open(path, for: .updating)
    }

    /// Why writing stopped; `stored` when all bytes were written.
    var outcome: Arrival.Appended { last.withLock { $0 } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (appended, needsFlush) = arrival.append(bytes, by: number, to: file, named: path)
        if needsFlush { shelf.inBackground { [shelf, arrival] in shelf.settle(arrival) } }
        last.withLock { $0 = appended }
        return appended == .stored
    }

    func ended(complete: Bool) {
        if complete { return }
        abandoned()
        shelf.inBackground { [shelf, arrival] in
            shelf.settle(arrival)
            guard !arrival.isFinished else { return }
            let record = arrival.record
            shelf.log(
                "interrupted \(arrival.wish.display) at \(record.offset) of \(record.length) bytes, upload \(arrival.shownID)"
            )
        }
    }
}
