/// Why an access token is too short to be safe, and what to do; `nil` where it is long enough.
///
/// Sixteen characters of sixteen kinds are 64 random bits: at one guess a second from each of a thousand connections,
/// guessing takes more than a hundred million years.
package func complaint(aboutToken token: [UInt8]) -> String? {
    token.count < 16
        ? "the token has fewer than 16 characters, which can be guessed; `openssl rand -hex 32` makes a better one"
        : nil
}
