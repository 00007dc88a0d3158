internal import Core

/// Makes the warnings for a person about a completed file that was sent in parts.
enum PartsWarnings {
    /// - Parameter checkpoint: A checkpoint with the fields of ``PartsUpload`` and ``FinalAnswer``.
    static func of(_ checkpoint: Checkpoint) -> [String] {
        var words = FinalAnswer.warnings(checkpoint) + FinalAnswer.doubts(checkpoint)
        let found = checkpoint.number("found_again")
        if found > 0 {
            words.append(
                "\(found) creation(s) got no answer: the upload that the last one began was found, and continued")
        }
        let remains = checkpoint.number("remains")
        if remains > 0 {
            words.append("begun \(remains) time(s) before: the remote may still hold parts of those uploads")
        }
        return words
    }
}
