internal import Core
internal import Linux
internal import Synchronization
internal import WebServer

/// The body of one PATCH, written as it arrives.
final class PatchBodyWriter: BodySink {
    let arrival: IncomingUpload
    private let directory: UploadDirectory
    private let number: UInt64
    private let path: FilePath
    private let file: Descriptor
    private let last = Mutex(IncomingUpload.Appended.stored)
    /// Called when no reply will be requested.
    private let abandoned: @Sendable () -> Void

    init(
        _ arrival: IncomingUpload, on directory: UploadDirectory, number: UInt64,
        abandoned: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        self.arrival = arrival
        self.directory = directory
        self.number = number
        self.abandoned = abandoned
        path = directory.data(of: arrival.id)
        file = try Descriptor.open(path, for: .updating)
    }

    /// Why writing stopped; `stored` when all bytes were written.
    var outcome: IncomingUpload.Appended { last.withLock { $0 } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (appended, needsFlush) = arrival.append(bytes, by: number, to: file, named: path)
        if needsFlush { directory.inBackground { [directory, arrival] in directory.commit(arrival) } }
        last.withLock { $0 = appended }
        return appended == .stored
    }

    func ended(complete: Bool) {
        if complete { return }
        abandoned()
        directory.inBackground { [directory, arrival] in
            directory.commit(arrival)
            guard !arrival.isFinished else { return }
            let record = arrival.record
            directory.log(
                "interrupted \(arrival.requestedPath.display) at \(record.offset) of \(record.length) bytes, upload \(arrival.shownID)"
            )
        }
    }
}
