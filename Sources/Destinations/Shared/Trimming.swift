/// Removes blanks and line ends at both ends; `nil` if nothing is left: an empty text would be refused, or replace an
/// existing one.
func trimmed(_ text: String) -> String? {
    let start = text.drop(while: \.isWhitespace)
    guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return nil }
    return String(start[...last])
}
