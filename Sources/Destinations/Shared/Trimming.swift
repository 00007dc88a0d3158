internal import Core

/// Removes blanks and line ends at both ends; `nil` if nothing is left: an empty text would be refused, or replace an
/// existing one.
func trimmed(_ text: String) -> String? {
    let rest = text.trimmed
    return rest.isEmpty ? nil : String(rest)
}
