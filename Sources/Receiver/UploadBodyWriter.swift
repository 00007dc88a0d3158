internal import Core
internal import Linux
internal import Synchronization
internal import WebServer

/// The body of one request, written as it arrives.
final class UploadBodyWriter: BodySink {
    enum Request: Sendable {
        /// Bytes of a known upload.
        case patch
        /// The first bytes of an upload that is not known yet (tus 1.0, "Creation With Upload"): the reply makes it known,
        /// or removes them. A crash leaves them without a record, and the next start removes them.
        case creation
    }

    let arrival: IncomingUpload
    private let request: Request
    private let directory: UploadDirectory
    private let number: UInt64
    private let path: FilePath
    private let file: Descriptor
    private let last = Mutex(IncomingUpload.Appended.stored)
    /// Called when no reply will be requested.
    private let abandoned: @Sendable () -> Void

    /// Opens the file for the bytes.
    init(
        _ request: Request, of arrival: IncomingUpload, on directory: UploadDirectory, number: UInt64,
        abandoned: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        self.request = request
        self.arrival = arrival
        self.directory = directory
        self.number = number
        self.abandoned = abandoned
        path = directory.data(of: arrival.id)
        file = try Descriptor.open(path, for: request == .patch ? .updating : .creating)
        if request == .creation { _ = arrival.beginWriting(number, at: 0) }
    }

    /// Why writing stopped; `stored` when all bytes were written.
    var outcome: IncomingUpload.Appended { last.withLock { $0 } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (appended, needsFlush) = arrival.append(bytes, by: number, to: file, named: path)
        // Nothing is synced before the upload is known.
        if needsFlush, request == .patch {
            directory.inBackground { [directory, arrival] in directory.commit(arrival) }
        }
        last.withLock { $0 = appended }
        return appended == .stored
    }

    func ended(complete: Bool) {
        if complete { return }
        abandoned()
        directory.inBackground { [self] in
            if request == .creation { return discard() }
            directory.commit(arrival)
            guard !arrival.isFinished else { return }
            let record = arrival.record
            directory.log(
                "interrupted \(arrival.requestedPath.display) at \(record.offset) of \(record.length) bytes, upload \(arrival.shownID)"
            )
        }
    }

    /// Removes the bytes of an upload that does not become known. Waits for the disk.
    func discard() {
        do { try Files.removeIfPresent(path) } catch {
            directory.log("cannot remove the bytes of a creation that was refused; the next start does: \(error)")
        }
    }
}
