package import Core
package import Linux

// Sources that are uploaded in place, without a copy.

extension StagingArea {
    /// Digests a source that is not copied, if it is the version that was recorded and stays it.
    package func digestInPlace(
        _ wanted: CopyRequest, requestedDigests: [PartDigests.RequestedDigest] = [], pace: CopyProgress = CopyProgress()
    ) throws(StagingError) -> (sha256: [UInt8], parts: PartDigests) {
        let from = try open(wanted)
        let content = try DigestingCopier.digest(
            of: from, named: wanted.shown, size: wanted.identity.size, requestedDigests: requestedDigests, pace: pace)
        guard content.bytes == wanted.identity.size else { throw .changed(wanted.shown) }
        try verifyUnchanged(wanted, from)
        from.forget(from: 0, count: 0)
        return (content.sha256, content.parts)
    }
}

extension SourceRelease.AssetIdentity {
    /// The state of a source that is uploaded in place.
    package enum InPlaceState: Sendable, Hashable {
        /// Unchanged. Contains its present ctime, for the next check.
        case same(changed: Int64)
        case changed
        case missing
    }

    /// Checks the source: size, mtime and inode, and its content when only its ctime differs.
    ///
    /// - Parameter trusted: The ctime of the last check that found it the same; `nil` where its content is compared in
    ///   any case.
    package func inPlaceState(trusting trusted: Int64?) throws(SystemError) -> InPlaceState {
        guard let folder = try source.openParentIfPresent(), let status = try folder.statusIfPresent(at: source.name)
        else {
            return .missing
        }
        guard matches(status) else { return .changed }
        if status.changed == trusted { return .same(changed: status.changed) }
        // chmod, a link, a rename there and back: only the bytes can decide.
        do throws(SystemError) {
            guard try digest(of: source.name, in: folder) == sha256 else { return .changed }
            let after = try folder.status(at: source.name)
            return after == status ? .same(changed: status.changed) : .changed
        } catch {
            if error.isMissing { return .missing }
            throw error
        }
    }

    /// Whether the file may have been written to since it was staged although its times are the same.
    ///
    /// The rule of Git's index for entries that are "racily clean". Where times are kept in whole seconds, a write in
    /// the second of the last one changes no time, so times prove something only when the bytes were read later than
    /// that. Where a file system has no change time of its own, they never do.
    package func mayHideWrite(_ status: FileStatus, at name: FilePath, in folder: borrowing OpenFolder) -> Bool {
        if status.changed % 1_000_000_000 == 0 {
            // FAT counts in steps of two seconds.
            guard let acquiredAt, acquiredAt.milliseconds >= status.changed / 1_000_000 + 2_000 else { return true }
        }
        return !FileSystemKind.keepsChangeTime(name, in: folder)
    }

    /// As above, for the file that has the source's name now; `false` where that cannot be examined.
    package func mayHideWrite() -> Bool {
        guard let folder = try? source.openParent(), let status = try? folder.status(at: source.name) else {
            return false
        }
        return mayHideWrite(status, at: source.name, in: folder)
    }

    /// Whether a file's content differs from the staged one. Size and mtime decide; where they are the same, its bytes.
    ///
    /// - Parameter name: The file's present name.
    func isAnotherVersion(
        _ status: FileStatus, at name: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> Bool {
        guard status.isRegular, status.size == size, status.modified == modified else { return true }
        return try digest(of: name, in: folder) != sha256
    }

    /// Whether the file that has the name now is proven to be another version. A file that cannot be read proves
    /// nothing.
    package func isReplaced() -> Bool {
        guard let folder = try? source.openParent(), let status = try? folder.status(at: source.name) else {
            return false
        }
        return (try? isAnotherVersion(status, at: source.name, in: folder)) ?? false
    }

    func matches(_ status: FileStatus) -> Bool {
        status.isRegular && status.size == size && status.modified == modified
            && (inode == nil || inode == status.inode)
    }
}
