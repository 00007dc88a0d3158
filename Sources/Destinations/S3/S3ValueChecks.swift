internal import Core
internal import Transport

/// Checks of values that are passed to the service unchanged. Otherwise their mistakes would only appear with the first
/// file.
enum S3ValueChecks {
    /// Amazon S3 user guide, "Canned ACL".
    private static let acls = [
        "private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read", "bucket-owner-read",
        "bucket-owner-full-control", "log-delivery-write",
    ]

    /// Allowed characters of each key besides letters and digits. A key of KMS is named by its id, its ARN or its
    /// alias.
    private static let marks = [("region", "-_."), ("storage_class", "-_."), ("kms_key", "-_.:/")]

    static func marked(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        for (key, marks) in marks {
            guard let word = values.text(key),
                !word.utf8.allSatisfy({ $0.isLetterOrDigit() || marks.utf8.contains($0) })
            else {
                continue
            }
            let list = marks.map { "`\($0)`" }.joined(separator: " ")
            all.append(SettingObjection(key: key, problem: "takes letters, digits and \(list), not `\(word)`"))
        }
        return all
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all = marked(values)
        if let acl = values.text("acl"), !acls.contains(acl) {
            let problem = "is not a canned ACL: `\(acl)`; there are: \(acls.joined(separator: ", "))"
            all.append(SettingObjection(key: "acl", problem: problem))
        }
        if values.text("addressing") == "virtual", let host = values.text("endpoint").map({ WebAddress($0).host }),
            IPAddress(host.filter { $0 != "[" && $0 != "]" }) != nil
        {
            let problem = "is `virtual`, and no bucket can be named before the address \(host); use `path`"
            all.append(SettingObjection(key: "addressing", problem: problem))
        }
        return all
    }

    /// Lower-case letters, digits and the hyphen.
    static func isOfHosts(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit(or: "-") && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }
}
