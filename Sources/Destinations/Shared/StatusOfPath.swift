/// Statuses that say nothing about a file: an intermediary answers with them, or the service for reasons of its own or
/// of the account.
///
/// 402 (RFC 9110, section 15.5.3) is about an account; 406 and 418 are answers of firewalls for web applications; 417
/// (15.5.18) is about `Expect`, which is left out from then on; 426 (15.5.22) and 428 (RFC 6585) are about the
/// protocol; 451 (RFC 7725) is about a place or a law; 499 is nginx's status for a client that closed the connection.
enum StatusOfPath {
    static let all: Set<Int> = [402, 406, 417, 418, 426, 428, 451, 499]

    /// Statuses below 500 that an intermediary may also send after it has forwarded the request. 417 refuses a request
    /// without its body.
    static let mayBeForwarded = all.subtracting([417]).union([408, 421, 425, 429])
}
