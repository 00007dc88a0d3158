/// Whether a text can be the name of a header or of a method (RFC 9110, section 5.6.2).
package func isToken(_ text: String) -> Bool {
    !text.isEmpty
        && text.utf8.allSatisfy { $0.isLetterOrDigit(or: "!#$%&'*+-.^_`|~") }
}
