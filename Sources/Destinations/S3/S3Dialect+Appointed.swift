internal import Core

// Support for an object whose key was assigned by the service that gave the right to it. The right may allow writing
// and no reading.

extension S3Dialect {
    /// The result of looking at a key.
    enum KeyLookup {
        case there(S3API.Object)
        case nothing
        /// The right does not allow looking. Amazon answers the same for a missing object when the key may not list.
        case hidden
        /// The right has ended, and is not renewed only to look.
        case ended
    }

    /// The failure code when another file has the key.
    static let otherThere = "other_there"
    /// OSS's code for it.
    static let isThere = "FileAlreadyExists"

    /// - Parameter isMade: An object with this key is known to exist.
    func sight(of key: FilePath, isMade: Bool = false) async throws -> KeyLookup {
        if settings.assignedObject == nil, api.mayNotLook { return .hidden }
        do {
            guard let object = try await api.glance(at: key) else { return .nothing }
            api.lookWasAnswered()
            return .there(object)
        } catch is S3API.MissingPermission {
            if isMade, settings.assignedObject == nil { api.lookWasRefused() }
            return .hidden
        } catch let error as UploadError {
            if settings.assignedObject != nil, S3Verdict.endsAtOSS.contains(error.failure.code) { return .ended }
            throw error
        }
    }

    /// No question is sent before the first start: the service has made the key for this file.
    func settle(
        at assignedObject: S3AssignedObject, _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout Checkpoint,
        _ restarts: Int64
    ) async throws -> RemoteObject? {
        checkpoint["server"] = api.server
        checkpoint["key"] = assignedObject.key.display
        checkpoint["checksum"] = settings.checksum.rawValue
        if checkpoint["asked_at"] == nil { checkpoint["asked_at"] = "\(api.client.clocks.wall().milliseconds)" }
        guard restarts > 0 else { return nil }
        let held = RemoteObject(
            id: assignedObject.key.display, url: api.address(of: assignedObject.key), verifiedBy: "held")
        switch try await sight(of: assignedObject.key) {
        case .nothing: return nil
        case .hidden, .ended: return try await assignedObject.isWhole() == true ? held : nil
        case .there(let there):
            switch try await likeness(of: there, at: assignedObject.key, to: order.file, plan, isOurs: true) {
            case .same: return held
            case .damaged(let error): throw error
            case .other:
                throw UploadError(
                    failure(
                        .protocol, Self.otherThere,
                        "\(api.address(of: assignedObject.key)), which was given for this file, has other content",
                        retryable: true), remedy: .refused(after: nil))
            }
        }
    }

    /// An object exists, and it cannot be found out which.
    func unseen(_ key: FilePath) -> UploadError {
        refusal(
            "outcome_unknown",
            "\(api.address(of: key)) exists, and the given right does not allow reading it: it may be this file, "
                + "after a lost answer. Check it there; `sluice cancel` ends the upload, and the source stays")
    }
}
