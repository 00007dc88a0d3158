package import Core
internal import Digests
internal import Linux

extension StagedFile {
    package typealias MakeFailure = (Failure.Class, Failure.Code, String, Bool) -> Failure

    /// Checks that the staged copy is the recorded one: a longer or shorter copy would give mixed content at the
    /// remote. A file that is uploaded in place may be on a network file system whose server does not answer, so its
    /// status is read on a thread that may wait.
    @discardableResult
    func checkStatus(_ failure: MakeFailure) async throws -> FileStatus {
        let place = place
        let status: FileStatus
        do { status = try await blocking { try FileStatus(at: place) } } catch let error as SystemError {
            throw UploadError(failure(.local, .stagedUnreadable, "\(error)", true), remedy: .restage(.unreadable))
        }
        guard status.isRegular, status.size == size else {
            throw changed("has \(status.size) bytes, and \(size) were staged", failure)
        }
        return status
    }

    /// Reads the whole copy. Called when nothing else explains a difference.
    package func checkContent(_ failure: MakeFailure) async throws {
        let place = place
        let found: Result<[UInt8], SystemError> = try await blocking {
            do throws(SystemError) {
                let file = try Descriptor.open(place)
                return .success(
                    try Hasher.digest(.sha256) { block, offset throws(SystemError) in
                        try file.read(into: block, at: offset, named: place.shown)
                    })
            } catch { return .failure(error) }
        }
        switch found {
        case .success(sha256): return
        case .success: throw changed("no longer has the content that was staged", failure)
        case .failure(let error):
            throw UploadError(failure(.local, .stagedUnreadable, "\(error)", true), remedy: .restage(.unreadable))
        }
    }

    /// The error for a copy that differs from its record.
    func changed(_ how: String, _ failure: MakeFailure) -> UploadError {
        UploadError(failure(.local, .stagedChanged, "\(place.display) \(how)", true), remedy: .restage(.changed))
    }
}
