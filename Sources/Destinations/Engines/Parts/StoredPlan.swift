internal import Core

// How a file was cut is kept with its upload: settings may change meanwhile.

extension PartPlan {
    /// As the upload in `checkpoint` was cut; `nil` where that is not known, or where it was of a file of another size.
    init?(_ checkpoint: Checkpoint, _ order: UploadOrder) {
        let rule = checkpoint["rule"].flatMap { Rule(rawValue: $0) }
        guard checkpoint["size"] == "\(order.file.size)", let rule else { return nil }
        self.init(size: order.file.size, partSize: checkpoint.number("part_size"), rule: rule)
    }

    /// The fields that keep it, and which file it is of.
    func checkpoint(_ order: UploadOrder) -> Checkpoint {
        Checkpoint([
            "part_size": "\(partSize)", "rule": rule.rawValue, "size": "\(size)",
            "sha256": hexadecimal(order.file.sha256),
        ])
    }
}
