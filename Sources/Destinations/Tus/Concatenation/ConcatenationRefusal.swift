internal import Core
internal import Synchronization
internal import Transport

/// Whether a server has refused partial uploads, or to join them, although it offers that. Then files are sent as one
/// upload for an hour. Shared by all uploads to a destination.
final class ConcatenationRefusal: Sendable {
    private let until = Mutex<MonotonicTime?>(nil)

    func record(_ clocks: any Clocks) {
        until.withLock { $0 = clocks.monotonic().advanced(by: .seconds(3600)) }
    }

    func isRecent(_ clocks: any Clocks) -> Bool { until.withLock { $0.map { clocks.monotonic() < $0 } ?? false } }
}

/// The server refuses a partial upload or its bytes, or has given it the address of another upload. The file is sent as
/// one upload.
struct ConcatenationRefusedError: Error {
    let error: UploadError
    /// The last one; `nil` where the caller has it.
    var checkpoint: OffsetCheckpoint?
    /// It says that the server does not do this at all.
    var isFinal = false
}

extension TusVerdict {
    /// Whether an answer may refuse a creation because of its `Upload-Concat`. A wrong address and a refused file give
    /// the same answers; the creation of one upload then shows that.
    func refusesConcatenation(_ response: Response) -> Bool {
        guard (400..<500).contains(response.status) || response.status == 501 else { return false }
        switch self {
        case .lessMetadata, .stop(.failUpload), .stop(.misconfigured): return true
        // Some servers forbid it.
        case .stop(.authenticate): return response.status == 403
        default: return false
        }
    }
}
