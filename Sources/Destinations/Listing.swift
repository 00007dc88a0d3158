package import Core
package import Transport

/// A remote that can list the objects that it holds, for `sluice remote`.
package protocol ObjectListing: Destination {
    /// Lists the objects that it holds, newest first, including those of other writers: one page, without side effects.
    ///
    /// - Parameter mark: ``RemotePage/next`` of the page before; `nil` for the first.
    /// - Throws: ``UploadError`` when the remote cannot be asked now.
    func list(after mark: String?, context: RequestContext) async throws(UploadError) -> RemotePage
}

/// A remote that can list the uploads that were begun there and are incomplete, for `sluice orphans`.
package protocol UnfinishedListing: Destination {
    /// Lists incomplete uploads at the remote, of any writer, without side effects.
    ///
    /// - Throws: ``UploadError`` when the remote cannot be asked now.
    func unfinished(context: RequestContext) async throws(UploadError) -> [RemoteUnfinished]
}
