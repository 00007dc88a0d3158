/// The names as a phrase: `a, b and c`.
package func listed(_ names: [String], _ word: String = "and") -> String {
    names.count < 2 ? names.joined() : "\(names.dropLast().joined(separator: ", ")) \(word) \(names.last ?? "")"
}
