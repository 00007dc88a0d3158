/// The part of the network that a program gets.
package struct ProgramNetwork: Sendable {
    /// Variables that are added to its environment, as `NAME=value`.
    package var environment: [String]
    package var confinement: Confinement
    /// Removes the secrets among the variables from a text that the program has printed.
    package var cover: @Sendable (String) -> String

    package init(
        environment: [String], confinement: Confinement, cover: @escaping @Sendable (String) -> String
    ) {
        self.environment = environment
        self.confinement = confinement
        self.cover = cover
    }
}
