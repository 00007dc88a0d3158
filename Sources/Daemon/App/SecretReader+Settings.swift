package import Config
package import Credentials

extension SecretReader {
    /// Makes the secrets of a configuration known (``learn(texts:sources:)``).
    package func learn(_ settings: Settings) async {
        let configured = ConfiguredSecrets(of: settings)
        await learn(texts: configured.texts, sources: configured.sources)
    }
}
