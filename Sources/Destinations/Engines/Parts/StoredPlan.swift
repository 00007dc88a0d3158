internal import Core

// The cut of a file is kept with its upload, because settings may change meanwhile.

extension PartPlan {
    /// Reads how the upload in `checkpoint` was cut; `nil` where that is unknown, or where the file had another size.
    init?(_ checkpoint: Checkpoint, _ order: UploadOrder) {
        let rule = checkpoint["rule"].flatMap { Rule(rawValue: $0) }
        guard checkpoint["size"] == "\(order.file.size)", let rule else { return nil }
        self.init(size: order.file.size, partSize: checkpoint.number("part_size"), rule: rule)
    }

    /// The fields that keep the plan and the identity of the file.
    func checkpoint(_ order: UploadOrder) -> Checkpoint {
        Checkpoint([
            "part_size": "\(partSize)", "rule": rule.rawValue, "size": "\(size)",
            "sha256": hexadecimal(order.file.sha256),
        ])
    }
}
