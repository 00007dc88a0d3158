/// What a client of the API over TCP may do.
package enum ControlRole: String, Hashable, Sendable, Codable, CaseIterable {
    /// See everything, and change nothing.
    case view
    /// Everything.
    case operate
}
