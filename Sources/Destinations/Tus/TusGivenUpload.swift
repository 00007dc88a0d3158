internal import Core
internal import Transport

/// An upload at the server that existed before, and whose address a person gave. Sluice sends bytes to it and never
/// creates it: where it is lost, the file fails.
struct TusGivenUpload {
    let url: String
    /// The configured address of the server.
    let server: String

    /// The order with a checkpoint of an upload without bytes, unless an attempt has made one.
    func opening(_ order: UploadOrder) -> UploadOrder {
        var checkpoint = order.offsetCheckpoint
        if checkpoint.url != nil { return order }
        checkpoint.url = url
        checkpoint.server = WebAddress(server).origin
        // No byte of the file has left: if the server has any, they are of another writer.
        SentBounds(OffsetCheckpoint(), size: order.file.size).store(in: &checkpoint)
        var order = order
        order.checkpoint = checkpoint.stored
        return order
    }
}

extension TusDialect {
    func isGiven(_ order: UploadOrder) -> Bool { order.url?.upload != nil }

    func lostGiven(_ order: UploadOrder, _ reason: String) -> UploadError {
        UploadError(
            failure(
                .permanent, .givenUploadUnusable,
                "the upload at the address that was given cannot be used: \(reason). Sluice does not create it again: "
                    + "add the file with the address of another upload",
                retryable: false), remedy: .failUpload)
    }
}
