extension Failure {
    /// The reason for a failure: a short constant in snake_case that scripts can match. It is stored, and shown in
    /// views and events.
    ///
    /// Open, since a stored failure may have a code that only another version of the program knows.
    package struct Code: RawRepresentable, Hashable, Sendable, Codable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

        /// The code of an answer that has only a status: `http_503`.
        package static func http(_ status: Int) -> Code { Code(rawValue: "http_\(status)") }
        /// The code of an error number of Vimeo's API: `vimeo_4102`.
        package static func vimeo(_ number: Int64) -> Code { Code(rawValue: "vimeo_\(number)") }
        /// The code that a service gives in its own answer, unchanged: `AccessDenied`.
        package static func service(_ code: String) -> Code { Code(rawValue: code) }
    }
}

// MARK: The policy, and a person

extension Failure.Code {
    /// A program of `before_upload` delays the upload, or gave no answer.
    package static let beforeUpload = Self(rawValue: "before_upload")
    /// A program of `before_upload` has ended the upload.
    package static let skipped = Self(rawValue: "skipped")
    /// A quota leaves less than the next request needs.
    package static let shortOfQuota = Self(rawValue: "short_of_quota")
    /// Many bytes of the file were wasted: it waits for an unmetered network.
    package static let wastedOnMetered = Self(rawValue: "wasted_on_metered")
    /// The upload has waited for longer than `expires_after`.
    package static let expired = Self(rawValue: "expired")
    /// Another destination of `first_of` has verified the file first.
    package static let superseded = Self(rawValue: "superseded")
    /// A request to the destination was stopped by this program.
    package static let cancelled = Self(rawValue: "cancelled")
    /// After a rebuild it is not known whether the destination has the file already.
    package static let perhapsSent = Self(rawValue: "perhaps_sent")
}

// MARK: Source

extension Failure.Code {
    /// The source was removed before it was copied, or uploaded in place.
    package static let sourceMissing = Self(rawValue: "source_missing")
    /// The source is read in place, and is away for now: its folder may not be mounted.
    package static let sourceAbsent = Self(rawValue: "source_absent")
    /// The source is read in place, and has changed: what was sent is given up.
    package static let sourceChanged = Self(rawValue: "source_changed")
    /// The source is read in place, and cannot be read.
    package static let sourceUnreadable = Self(rawValue: "source_unreadable")
}

// MARK: Staging

extension Failure.Code {
    /// The file is larger than `staging.max_size`.
    package static let largerThanStaging = Self(rawValue: "larger_than_staging")
    /// The staged copy, or the source that is read in place, is missing or has another size.
    package static let copyLost = Self(rawValue: "copy_lost")
    /// The staged copy has other bytes than were staged.
    package static let stagedChanged = Self(rawValue: "staged_changed")
    package static let stagedUnreadable = Self(rawValue: "staged_unreadable")
    /// The export's program has ended, and its output still changes.
    package static let exportChanges = Self(rawValue: "export_changes")
    package static let exportFailed = Self(rawValue: "export_failed")
    /// The export's program made no usable file.
    package static let exportNoOutput = Self(rawValue: "export_no_output")
    package static let exportTimeout = Self(rawValue: "export_timeout")
}

// MARK: Connection

extension Failure.Code {
    /// No connection could be made: nothing was sent.
    package static let unreachable = Self(rawValue: "unreachable")
    /// The connection was reset: the request may have arrived.
    package static let connectionLost = Self(rawValue: "connection_lost")
    /// No complete answer came in time: the request may have arrived.
    package static let noReply = Self(rawValue: "no_reply")
    /// The TLS handshake failed, or the certificate is not trusted.
    package static let tls = Self(rawValue: "tls")
    /// The server has another public key than the configuration allows.
    package static let pinnedKey = Self(rawValue: "pinned_key")
    /// The server requires a client certificate, or does not accept the configured one.
    package static let clientCertificate = Self(rawValue: "client_certificate")
    /// The address has `https`, and the server has no TLS.
    package static let noTLS = Self(rawValue: "no_tls")
    /// The address has `http`, and the server requires TLS.
    package static let onlyTLS = Self(rawValue: "only_tls")
    package static let proxyRefused = Self(rawValue: "proxy_refused")
    /// The request could not be made, for a reason of this machine.
    package static let requestImpossible = Self(rawValue: "request_impossible")
    /// The server names an address at another origin: a person has to decide whether it may.
    package static let otherOrigin = Self(rawValue: "other_origin")
    /// A web page answered, as of a login portal.
    package static let webPage = Self(rawValue: "web_page")
    /// A 404 that does not come from the upload server itself.
    package static let notTheRemote = Self(rawValue: "not_the_remote")
    /// A success whose body cannot be decoded.
    package static let unreadableAnswer = Self(rawValue: "unreadable_answer")
    /// A success without the required values.
    package static let unusableAnswer = Self(rawValue: "unusable_answer")
    /// The service asked for a pause, and it is not over: no request was sent.
    package static let rateLimit = Self(rawValue: "rate_limit")
}

// MARK: Credentials

extension Failure.Code {
    package static let secretUnreadable = Self(rawValue: "secret_unreadable")
    /// The secret has a character that is not allowed in a header.
    package static let secretUnfit = Self(rawValue: "secret_unfit")
    /// The service that gives keys to this machine cannot be used.
    package static let instanceMetadata = Self(rawValue: "instance_metadata")
    /// The service for temporary keys cannot be used.
    package static let stsUnusable = Self(rawValue: "sts_unusable")
    /// The service or program that signs requests cannot be used.
    package static let signerUnusable = Self(rawValue: "signer_unusable")
    package static let signerRefused = Self(rawValue: "signer_refused")
    /// The service or program that gives the place of a file cannot be used.
    package static let authorisationUnusable = Self(rawValue: "authorisation_unusable")
    /// The program that gives the place of a file refuses, without a code.
    package static let authorisationRefused = Self(rawValue: "authorisation_refused")
}

// MARK: Beginning an upload

extension Failure.Code {
    /// The results of earlier creations are not known: the next one waits, and was not sent.
    package static let creationsUnknown = Self(rawValue: "creations_unknown")
    /// A video may be that of a creation whose answer was lost; it is watched before it is used.
    package static let creationUnclear = Self(rawValue: "creation_unclear")
    /// The server creates no uploads.
    package static let creationUnsupported = Self(rawValue: "creation_unsupported")
    /// The upload at the address that a person gave is gone, or is not for this file.
    package static let givenUploadUnusable = Self(rawValue: "given_upload_unusable")
    /// The answer to a creation names no address.
    package static let noLocation = Self(rawValue: "no_location")
    /// The answer to a creation names an address that is refused.
    package static let badLocation = Self(rawValue: "bad_location")
    /// The answer to a creation has no identifier of the upload.
    package static let noToken = Self(rawValue: "no_token")
    /// The address that was given for this upload cannot be used.
    package static let urlRefused = Self(rawValue: "url_refused")
    /// A new upload has the address of the one that the server refused.
    package static let sameUpload = Self(rawValue: "same_upload")
}

// MARK: Continuing an upload

extension Failure.Code {
    /// The answer names no usable offset.
    package static let noOffset = Self(rawValue: "no_offset")
    /// The same, many times in a row.
    package static let offsetUnknown = Self(rawValue: "offset_unknown")
    /// The server accepts bytes, and its offset does not move.
    package static let noProgress = Self(rawValue: "no_progress")
    /// The server contradicts itself about its offset, many times in a row.
    package static let serverContradicts = Self(rawValue: "server_contradicts")
    /// The server is at another byte than the one after the accepted block.
    package static let otherPosition = Self(rawValue: "other_position")
    /// The answer about the accepted blocks has no list.
    package static let noList = Self(rawValue: "no_list")
    /// The unfinished upload is not found; it is asked for again.
    package static let uploadMissing = Self(rawValue: "upload_missing")
    /// The server has lost the upload or bytes of it, several times.
    package static let uploadLost = Self(rawValue: "upload_lost")
    /// The answer about the unfinished upload describes another one.
    package static let uploadChanged = Self(rawValue: "upload_changed")
    /// The temporary file was removed at the destination.
    package static let partGone = Self(rawValue: "part_gone")
}

// MARK: Finishing an upload

extension Failure.Code {
    /// The server refused the file in its answer to the last bytes.
    package static let refusedAtEnd = Self(rawValue: "refused_at_end")
    /// The server called the file complete before it had every byte.
    package static let endedEarly = Self(rawValue: "ended_early")
    /// The server accepted every block, and did not confirm the file.
    package static let notConfirmed = Self(rawValue: "not_confirmed")
    /// It cannot be found out whether the file is complete there.
    package static let outcomeUnknown = Self(rawValue: "outcome_unknown")
    /// The service has every byte, and is still processing them.
    package static let remoteWorks = Self(rawValue: "remote_works")
    /// The same, for longer than `verify_timeout`.
    package static let verifyTimeout = Self(rawValue: "verify_timeout")
    /// The account does not show yet what became of the upload.
    package static let notShownYet = Self(rawValue: "not_shown_yet")
    /// Other bytes were read back than were written.
    package static let readBackDiffers = Self(rawValue: "read_back_differs")
    /// The object's ETag is not the expected one, and may not be a digest.
    package static let etagUnclear = Self(rawValue: "etag_unclear")
    /// An object was made of this file, and is not complete.
    package static let objectDamaged = Self(rawValue: "object_damaged")
    /// It cannot be found out whether the remote still has something of a cancelled upload.
    package static let removalUnknown = Self(rawValue: "removal_unknown")
}

// MARK: Names at the destination

extension Failure.Code {
    /// Another file has the name.
    package static let nameTaken = Self(rawValue: "name_taken")
    /// Other files have the name and the next numbers after it: further ones are tried in a moment.
    package static let namesTaken = Self(rawValue: "names_taken")
    /// The service reports an object even for an unused name.
    package static let allNamesTaken = Self(rawValue: "all_names_taken")
    /// The key may not find out whether a name is free.
    package static let namesUnseen = Self(rawValue: "names_unseen")
    /// Another upload of the same file under the same name is running.
    package static let nameInUse = Self(rawValue: "name_in_use")
    /// The name is taken, perhaps by this upload: an answer was lost.
    package static let perhapsThere = Self(rawValue: "perhaps_there")
    /// Another file is at the address that was given for this one.
    package static let otherThere = Self(rawValue: "other_there")
    /// The destination cannot have a file of this name.
    package static let nameRefused = Self(rawValue: "name_refused")
    package static let nameTooLong = Self(rawValue: "name_too_long")
    /// A header cannot carry the name.
    package static let nameUnfit = Self(rawValue: "name_unfit")
    /// All references of this file are used by media that cannot be continued.
    package static let referencesTaken = Self(rawValue: "references_taken")
    /// A file or a link has the name of a folder.
    package static let folderInTheWay = Self(rawValue: "folder_in_the_way")
    /// The folder disappeared while it was created.
    package static let folderGone = Self(rawValue: "folder_gone")
}

// MARK: Files that are refused

extension Failure.Code {
    package static let emptyFile = Self(rawValue: "empty_file")
    /// The destination's file system has no files of this size.
    package static let fileTooLarge = Self(rawValue: "file_too_large")
    /// The service takes no files of this size.
    package static let tooLarge = Self(rawValue: "too_large")
    /// The server announces a smaller `Tus-Max-Size`.
    package static let maxSizeExceeded = Self(rawValue: "max_size_exceeded")
    package static let metadataRefused = Self(rawValue: "metadata_refused")
    /// The name has no extension of a medium that the service accepts.
    package static let notMedia = Self(rawValue: "not_media")
    package static let notAVideo = Self(rawValue: "not_a_video")
    package static let notAPicture = Self(rawValue: "not_a_picture")
}

// MARK: Folder of a destination

extension Failure.Code {
    /// Nothing is mounted at `mount`.
    package static let notMounted = Self(rawValue: "not_mounted")
    /// The file `marker` does not exist.
    package static let noMarker = Self(rawValue: "no_marker")
    package static let targetMissing = Self(rawValue: "target_missing")
    /// Another folder is at the path than the one that was opened.
    package static let targetReplaced = Self(rawValue: "target_replaced")
    /// The mount has lost its server.
    package static let targetAway = Self(rawValue: "target_away")
    /// The file system has not answered for `stall_timeout`.
    package static let targetSilent = Self(rawValue: "target_silent")
    /// An input or output error of the file system.
    package static let targetBroken = Self(rawValue: "target_broken")
    package static let targetFull = Self(rawValue: "target_full")
    package static let targetQuota = Self(rawValue: "target_quota")
    package static let targetReadOnly = Self(rawValue: "target_read_only")
    package static let targetDenied = Self(rawValue: "target_denied")
    /// The file system lacks a needed feature.
    package static let targetUnable = Self(rawValue: "target_unable")
    package static let targetBusy = Self(rawValue: "target_busy")
    /// Any other error of the system.
    package static let targetFailed = Self(rawValue: "target_failed")
}

// MARK: Video services

extension Failure.Code {
    /// The service has every byte, and the account's quota or storage does not allow the video.
    package static let quotaExceeded = Self(rawValue: "quota_exceeded")
    /// The service accepted every byte, and reports that the upload failed.
    package static let uploadRejected = Self(rawValue: "upload_rejected")
    /// The service cannot make a video or medium of the bytes.
    package static let transcodingFailed = Self(rawValue: "transcoding_failed")
    package static let videoDeleted = Self(rawValue: "video_deleted")
    package static let mediumDeleted = Self(rawValue: "medium_deleted")
    /// A renewed right leads to another object than before.
    package static let mediaMoved = Self(rawValue: "media_moved")
    /// The same medium was given for another file.
    package static let mediaShared = Self(rawValue: "media_shared")
    /// A thumbnail waits for its video.
    package static let companionFirst = Self(rawValue: "companion_first")
    /// A thumbnail has no video to which it belongs.
    package static let noVideo = Self(rawValue: "no_video")
    /// The thumbnail was chosen, and is not shown.
    package static let notActive = Self(rawValue: "not_active")
    /// The token may not set thumbnails.
    package static let thumbnailForbidden = Self(rawValue: "thumbnail_forbidden")
}

extension Failure.Code {
    /// The codes of this program's own failures: without those that are made from a status or from a service's answer.
    package static let all: [Failure.Code] = [
        .beforeUpload, .skipped, .shortOfQuota, .wastedOnMetered, .expired, .superseded, .cancelled, .perhapsSent,
        .sourceMissing, .sourceAbsent, .sourceChanged, .sourceUnreadable,
        .largerThanStaging, .copyLost, .stagedChanged, .stagedUnreadable, .exportChanges, .exportFailed,
        .exportNoOutput, .exportTimeout,
        .unreachable, .connectionLost, .noReply, .tls, .pinnedKey, .clientCertificate, .noTLS, .onlyTLS, .proxyRefused,
        .requestImpossible,
        .otherOrigin, .webPage, .notTheRemote, .unreadableAnswer, .unusableAnswer, .rateLimit,
        .secretUnreadable, .secretUnfit, .instanceMetadata, .stsUnusable, .signerUnusable, .signerRefused,
        .authorisationUnusable, .authorisationRefused,
        .creationsUnknown, .creationUnclear, .creationUnsupported, .givenUploadUnusable, .noLocation, .badLocation,
        .noToken, .urlRefused,
        .sameUpload,
        .noOffset, .offsetUnknown, .noProgress, .serverContradicts, .otherPosition, .noList, .uploadMissing,
        .uploadLost, .uploadChanged, .partGone,
        .refusedAtEnd, .endedEarly, .notConfirmed, .outcomeUnknown, .remoteWorks, .verifyTimeout, .notShownYet,
        .readBackDiffers, .etagUnclear, .objectDamaged, .removalUnknown,
        .nameTaken, .namesTaken, .allNamesTaken, .namesUnseen, .nameInUse, .perhapsThere, .otherThere, .nameRefused,
        .nameTooLong, .nameUnfit, .referencesTaken, .folderInTheWay, .folderGone,
        .emptyFile, .fileTooLarge, .tooLarge, .maxSizeExceeded, .metadataRefused, .notMedia, .notAVideo, .notAPicture,
        .notMounted, .noMarker, .targetMissing, .targetReplaced, .targetAway, .targetSilent, .targetBroken,
        .targetFull, .targetQuota, .targetReadOnly, .targetDenied, .targetUnable, .targetBusy, .targetFailed,
        .quotaExceeded, .uploadRejected, .transcodingFailed, .videoDeleted, .mediumDeleted, .mediaMoved, .mediaShared,
        .companionFirst, .noVideo, .notActive, .thumbnailForbidden,
    ]
}
