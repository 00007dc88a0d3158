/// Without blanks and line ends at its ends; `nil` for what is nothing else: an empty text would be refused, or take the place of what is there.
func trimmed(_ text: String) -> String? {
    let start = text.drop(while: \.isWhitespace)
    guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return nil }
    return String(start[...last])
}
